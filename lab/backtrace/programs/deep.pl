# Waits 20 calls deep, within the comparison of a sort; prints "ready".
$| = 1;

sub deep {
    my ($left) = @_;
    my @sorted = $left ? sort { deep($left - 1) } 2, 1 : ();
    return $sorted[0] if $left;
    print "ready\n";
    sleep 600;
}

deep(20);
