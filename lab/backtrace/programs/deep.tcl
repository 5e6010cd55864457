# Waits 20 calls deep; prints "ready".
proc deep {left} {
    if {$left} {return [lindex [lsort -command [list apply {{left a b} {deep [expr {$left - 1}]; return 0}} $left] {2 1}] 0]}
    puts ready
    flush stdout
    after 600000
}
deep 20
