-- Waits 20 calls deep, within callbacks of built-in functions; prints "ready".
local function deep(left)
  if left > 0 then
    return string.gsub("a", "a", function() return deep(left - 1) end)
  end
  print("ready")
  io.stdout:flush()
  io.read()
end

deep(20)
