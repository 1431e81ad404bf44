# A key scan that locks rows is refused where nothing can be written, with the
# code by which a client knows that.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $primary = EntityApi::Test->cluster;
$primary->apply("$checkout/t/data/entities");
my $shim = EntityApi::Test->shim($primary);
my $tenant = $shim->tenant('acme')->{id};
my $ed = $shim->user($tenant, 'ed', ['Editor']);

sub create { return $shim->must(201, POST => "/api/v1/$_[0]", { token => $ed, json => { data => { type => $_[0], @_[1 .. $#_] } } })->{data}{id} }

my $person = create(people => attributes => { name => 'Ann' });
my $box = create(boxes => attributes => { label => 'b' }, relationships => { owner => { data => { type => 'people', id => $person } } });
my $standby = EntityApi::Test->standby($primary, 'near');
my $end = $primary->psql('select pg_current_wal_insert_lsn()');
EntityApi::Test::wait_until(20, sub { $standby->psql("select pg_last_wal_replay_lsn() >= '$end'") eq 't' }) or die "the standby does not follow\n";

my $delete = "select status from entityapi.handle('DELETE', '/api/v1/boxes/$box', jsonb_build_object('authorization', 'Bearer $ed->{accessToken}', 'if-match', '\"0\"'), null, null)";
my $refused = qr/\A\S+ ERROR:  25006: cannot execute SELECT FOR UPDATE in a read-only transaction/;

like($standby->try_psql("\\set VERBOSITY verbose\n$delete")->{err}, $refused, 'on a standby');
like($primary->try_psql("\\set VERBOSITY verbose\nset default_transaction_read_only = on; $delete")->{err}, $refused, 'in a transaction that only reads');
is($primary->psql($delete), '204', 'elsewhere it is deleted');

done_testing();
