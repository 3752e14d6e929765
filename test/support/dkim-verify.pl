#!/usr/bin/perl
# Verifies DKIM signatures with Mail::DKIM, a verifier that shares no code with ours.
# Usage: dkim-verify.pl SERVER PORT FILE...
# Prints one line per file: its name and the results of its signatures, joined by commas.
use strict;
use warnings;
use Mail::DKIM::DNS;
use Mail::DKIM::Verifier;
use Net::DNS::Resolver;

my ($server, $port, @files) = @ARGV;
Mail::DKIM::DNS::resolver(
    Net::DNS::Resolver->new(nameservers => [$server], port => $port, recurse => 1, retry => 2, udp_timeout => 5));

for my $file (@files) {
    my $verifier = Mail::DKIM::Verifier->new();
    open(my $handle, '<:raw', $file) or die "$file: $!";
    while (read($handle, my $bytes, 65536)) { $verifier->PRINT($bytes) }
    close($handle);
    $verifier->CLOSE;
    print $file, ' ', join(',', map { $_->result } $verifier->signatures), "\n";
}
