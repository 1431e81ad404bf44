package EntityApi::Words;

# What a test file says besides its results goes into a file of the folder
# ENTITYAPI_WORDS, for scripts/test/tap, which loads this before the test.

use strict;
use warnings;

use IO::Handle;

# The harness does not look at others any more while this is all it has to
# read of a test, so it stays open.  No program that is started has it.
open our $harness, '>&', \*STDERR or die "standard error: $!\n";
open STDERR, '>>', "$ENV{ENTITYAPI_WORDS}/" . $0 =~ tr{/}{-}r or die "$0: $!\n";
STDERR->autoflush(1);

1;
