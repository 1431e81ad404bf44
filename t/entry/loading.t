# A session whose first call is cancelled while it loads the library is as good
# as any other afterwards.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Session;

delete $ENV{ENTITYAPI_TEST_MAPPED};

# A setting that there is not is a warning as the library is loaded, and a
# warning is where a cancellation is met.
my $cluster = EntityApi::Test->cluster(conf => ['entityapi.of_nobody = 1']);

# Nodes answer when the declarations say that the rows are distributed.
$cluster->psql(q{select entityapi.apply_manifest('[]')});

# The function's statement is begun, and so loads, when the other has been called.
$cluster->psql(q{create function public.version_then() returns text language sql volatile as 'select entityapi.version()'});

my $session = EntityApi::Test::Session->new($cluster);
is($session->ask('select pg_cancel_backend(pg_backend_pid()), public.version_then()')->{sqlstate}, '57014', 'it is cancelled as it loads');
my $answer = $session->ask('select entityapi.version()');
is("$answer->{sqlstate} $answer->{message}", '00000 ', 'and does what it is asked from then on');
is($session->ask("select status from entityapi.handle('GET', '/actuator/health', '{}', null, '192.0.2.1')")->{out}, 200, 'requests, too');
unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended');
done_testing();
