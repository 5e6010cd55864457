<?php
// Waits 20 calls deep, within callbacks of built-in functions; prints "ready".
function deep(int $left): int
{
    if ($left) {
        return array_map(fn (int $value): int => deep($value - 1), [$left])[0];
    }
    echo "ready\n";
    return sleep(600);
}

deep(20);
