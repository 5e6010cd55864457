// Waits 20 calls deep, within callbacks of built-in functions; prints "ready".
function deep(left) {
  if (left) return [left].map((value) => deep(value - 1))[0];
  require("fs").writeSync(1, "ready\n");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
deep(20);
