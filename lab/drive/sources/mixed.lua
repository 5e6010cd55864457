local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local words = {}
for line in io.lines(arg[1]) do
  for word in line:gmatch("%a+") do words[#words + 1] = word end
end
table.sort(words, function(a, b) return #a == #b and a < b or #a < #b end)
print(words[1], words[#words], fib(7))
local ok, problem = pcall(function() error({code = 7}) end)
print(ok, problem.code)
local make = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i * i) end end)
print(make(), make(), make())
local object = setmetatable({}, {__index = function(_, key) return key .. "!" end, __add = function() return 5 end})
print(object.name, object + 1, ("x"):rep(5), string.format("%5.2f %q", 1.5, "quoted"))
collectgarbage()
