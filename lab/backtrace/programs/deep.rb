# Waits 20 calls deep, within blocks; prints "ready".
def deep(left)
  return [left].map { |value| deep(value - 1) }.first if left.positive?

  puts "ready"
  $stdout.flush
  sleep 600
end

Thread.new { sleep 600 }
deep 20
