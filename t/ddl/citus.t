# Where Citus keeps rows of the service's tables, nothing is answered from what
# it left behind.  Its catalog is played here by a table of the same name and
# column: that is all that is looked at.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib "$FindBin::Bin/../lib";
