# Usage: redis.sh REDIS-BENCHMARK PORT.  Waits for the server, sends it commands of many kinds, and stops it.
# A client that finds no server does not end.
until timeout 2 "$1" -p "$2" -q -n 1 -c 1 ping >/dev/null 2>&1; do sleep 0.2; done
"$1" -p "$2" -q -n 40000 -P 16 -r 10000 -t set,get,incr,lpush,rpop,sadd,hset,zadd,zpopmin,lrange_100,mset
"$1" -p "$2" -q -n 1000 eval 'local s = 0; for i = 1, 300 do s = s + i end; return s' 0
timeout 10 "$1" -p "$2" -q -n 1 -c 1 shutdown nosave
exit 0
