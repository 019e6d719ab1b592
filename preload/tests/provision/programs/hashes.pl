# Hashes, strings and forks: prints what must be the same wherever the memory is from.
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
my (%table, $state) = (), 1;
$state = 1;
for my $i (1 .. 200_000) {
    $state = ($state * 1103515245 + 12345) & 0x7fffffff;
    $table{$state} = "value $i";
}
my $text = join "\n", map { "$_ $table{$_}" } sort { $a <=> $b } keys %table;
print sha256_hex($text), "\n";
$| = 1;
for my $child (1 .. 4) {
    my $pid = fork;
    if (!$pid) {
        $text =~ s/value/child $child/g;
        print sha256_hex($text), "\n";
        exit 0;
    }
    waitpid $pid, 0;
    die if $?;
}
print sha256_hex($text x 5), "\n", `echo from a child`;
