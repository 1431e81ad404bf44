# Writers under load while the database and the shim are torn down: what was
# acknowledged is there, what was to be sent again is not, nothing is there
# twice, and it goes on by itself.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use HTTP::Tiny;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);

my $cluster = EntityApi::Test::StandIn->cluster;
my $folder = EntityApi::Test::folder();

# /write/VALUE stores it; every third one meets a conflict first.
$cluster->psql(<<~'SQL');
	create table written (value text not null);
	create sequence conflicts;
	alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
	create function entityapi.handle(method text, target text, in_headers jsonb,
		in_body bytea, remote inet, out status int, out headers jsonb, out body text)
	language plpgsql security definer set search_path = public as $$
	begin
		if target like '/write/%' then
			insert into written values (split_part(target, '/', 3));
			if nextval('conflicts') % 3 = 0 then
				raise exception 'conflict' using errcode = '40001';
			end if;
			perform pg_sleep(0.002);
		end if;
		select h.* into status, headers, body
		from entityapi.stand_in(method, '/x', in_headers, in_body, remote) h;
	end $$;
	SQL

my $shim = EntityApi::Test->shim($cluster, pool_size => 4, keep_alive => 'yes');
my @writers;

# Writes values of its own, each once, and notes what came of them.
sub writer
{
	my ($number) = @_;
	my $client = HTTP::Tiny->new(timeout => 60);
	my $n = 0;

	open my $acknowledged, '>', "$folder/acknowledged.$number" or die;
	open my $statuses, '>', "$folder/statuses.$number" or die;
	open my $again, '>', "$folder/again.$number" or die;
	$_->autoflush(1) for $acknowledged, $statuses, $again;
	until (-e "$folder/stop")
	{
		my $value = "$number-" . ++$n;
		my $answer = $client->post($shim->url . "/write/$value");

		print $acknowledged "$value\n" if $answer->{status} == 200;
		print $statuses "$answer->{status}\n";
		print $again "$value\n" if $answer->{content} =~ /"code":"UNAVAILABLE"/ || defined $answer->{headers}{'retry-after'};
		sleep 0.01 if $answer->{status} != 200;
	}
	POSIX::_exit(0);
}

for my $number (1 .. 6)
{
	my $pid = fork // die "fork: $!\n";
	writer($number) if $pid == 0;
	push @writers, $pid;
}

sub lines_of
{
	my ($name) = @_;
	return map { split /\n/, -e "$folder/$name.$_" ? EntityApi::Test::slurp("$folder/$name.$_") : '' } 1 .. 6;
}

# Whether a request is answered again.
sub is_back
{
	return EntityApi::Test::wait_until(60, sub {
			HTTP::Tiny->new(timeout => 5)->get($shim->url . '/x')->{status} == 200 });
}

sub backends
{
	return split /\n/, $cluster->psql(
		"select pid from pg_stat_activity where application_name = 'entityapi-shim'");
}

my %events = (
	'backends are terminated' => sub {
		$cluster->psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'entityapi-shim'") },
	'a backend is killed' => sub {
		kill KILL => (backends())[0];
		EntityApi::Test::wait_until(20, sub { $cluster->try_psql('select 1')->{status} == 0 }) },
	'PostgreSQL is restarted' => sub { $cluster->restart },
	'PostgreSQL crashes' => sub { $cluster->stop('immediate')->start },
	'PostgreSQL is away for a while' => sub {
		$cluster->stop;
		EntityApi::Test::wait_until(60, sub { grep { $_ == 503 } lines_of('statuses') });
		$cluster->start });

# Until so many more writes are acknowledged
sub written
{
	my ($more) = @_;
	my $before = () = lines_of('acknowledged');

	return EntityApi::Test::wait_until(60, sub { lines_of('acknowledged') >= $before + $more });
}

ok(written(60), 'they write');
for my $name (sort keys %events)
{
	$events{$name}->();
	ok(is_back(), "$name: back by itself");
	ok(written(60), 'and writing goes on');
}

my %seen;
$seen{$_}++ for lines_of('statuses');
is(join(' ', sort keys %seen), '200 503', 'answers were 200 and 503 only');

# Here clients see connections break.
$shim->stop('KILL');
$shim->begin;
written(20);

open my $stop, '>', "$folder/stop" or die;
close $stop;
waitpid $_, 0 for @writers;

my %stored;
$stored{$_}++ for split /\n/, $cluster->psql('select value from written');
my @acknowledged = lines_of('acknowledged');
my %answered = map { $_ => 1 } @acknowledged;
my @statuses = lines_of('statuses');

cmp_ok(scalar @acknowledged, '>', 300, scalar(@acknowledged) . ' writes were acknowledged');
is(join(' ', grep { !$stored{$_} } @acknowledged), '', 'each is stored');
is(join(' ', grep { $stored{$_} > 1 } keys %stored), '', 'nothing is stored twice');
my @again = lines_of('again');
cmp_ok(scalar @again, '>', 0, scalar(@again) . ' writes were to be sent again');
is(join(' ', grep { $stored{$_} } @again), '', 'none of them is stored');
my $unknown = grep { !$answered{$_} } keys %stored;
cmp_ok($unknown, '<=', grep({ $_ != 200 } @statuses), 'what else is stored was refused or cut off');
note "$unknown writes were stored without an answer";
is($shim->stop, 0, 'ends with 0');

done_testing;
