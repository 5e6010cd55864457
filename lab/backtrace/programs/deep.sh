# Waits 20 calls deep; prints "ready".
deep() {
    if (($1)); then
        deep $(($1 - 1))
    else
        echo ready
        read -r _
    fi
}
deep 20
