package Load;

# Clients of t/citus: each is a process that writes items of one tenant until it
# is told to end, and notes what was acknowledged.  What it has written it reads
# at once, from another node.

use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP ();
use POSIX ();
use Time::HiRes qw(time);

use EntityApi::Test;

my $json = JSON::PP->new->utf8->canonical;
my $type = 'application/vnd.api+json';

# begin(folder => ..., name => ..., shims => [...], token => ..., refused => 0)
#
# Requests go to the shims in turns.  With "refused", a 503 is what may happen;
# all else is noted as a fault.
sub begin
{
	my ($class, %options) = @_;
	my $self = bless { %options, made => 0, turn => 0 }, $class;
	my $parent = $$;
	my $pid = fork // die "fork: $!\n";

	return $self if $self->{pid} = $pid;
	srand $$;
	open $self->{notes}, '>', "$self->{folder}/$self->{name}" or POSIX::_exit(1);
	$self->{notes}->autoflush(1);
	$self->{client} = HTTP::Tiny->new(timeout => 60, keep_alive => 1);
	eval { $self->_step($_) until -e "$self->{folder}/stop" || getppid != $parent; 1 } or $self->_note(X => $@);
	POSIX::_exit(0);
}

# All ends; what each has noted: a hash of "made" (name to id), "stays" (name to
# rank, of those that are to be there), "unknown" (of those without an answer),
# "faults", "done", "refused" and "longest" (seconds).
sub end
{
	my (@loads) = @_;
	my %sum = (made => {}, stays => {}, unknown => {}, faults => [], done => 0, refused => 0, longest => 0);

	open my $stop, '>', "$loads[0]{folder}/stop" or die "stop: $!\n";
	close $stop;
	for my $load (@loads)
	{
		waitpid $load->{pid}, 0;
		my $path = "$load->{folder}/$load->{name}";

		for my $line (split /\n/, EntityApi::Test::slurp($path))
		{
			my ($what, $name, @rest) = split / /, $line;

			if ($what eq '?') { $sum{unknown}{$name} = $rest[0] }
			elsif ($what eq '!')
			{
				delete $sum{unknown}{$name};
				$sum{made}{$name} //= $rest[1];
				$rest[0] eq '-' ? delete $sum{stays}{$name} : ($sum{stays}{$name} = $rest[0]);
				$sum{done}++;
				$sum{longest} = $rest[2] if $rest[2] > $sum{longest};
			}
			elsif ($what eq 'R') { $sum{refused}++ }
			else { push @{ $sum{faults} }, "$load->{name}: $line" }
		}
		unlink $path;
	}
	unlink "$loads[0]{folder}/stop";
	return \%sum;
}

# How many of its writes have been acknowledged, and requests refused, so far
sub done { return $_[0]->_noted('!') }
sub refused { return $_[0]->_noted('R') }

sub _noted
{
	my ($self, $what) = @_;
	my $path = "$self->{folder}/$self->{name}";

	return -e $path ? scalar(() = EntityApi::Test::slurp($path) =~ /^\Q$what\E /mg) : 0;
}

sub _note { my ($self, @words) = @_; print { $self->{notes} } join(' ', map { s/\s+/ /gr } @words), "\n"; return }

sub _ask
{
	my ($self, $method, $target, $body) = @_;
	my $shim = $self->{shims}[ $self->{turn}++ % @{ $self->{shims} } ];
	my $answer = $self->{client}->request($method, $shim->url . $target, {
			headers => { authorization => "Bearer $self->{token}", accept => $type, defined $body ? ('content-type' => $type) : () },
			defined $body ? (content => $json->encode($body)) : () });

	return ($answer->{content} // '') eq '' ? {} : $json->decode($answer->{content}) if $answer->{success};
	$self->_note($answer->{status} == 503 && $self->{refused} ? 'R' : 'X', "$method $target: $answer->{status} $answer->{content}");
	return;
}

# One write: a new item, another rank for one that is there, or its end.
sub _step
{
	my ($self) = @_;
	my $mine = $self->{mine} //= [];
	my $what = @$mine < 3 ? 0 : rand;
	my $item = $what < 0.4 ? { name => "$self->{name}-" . ++$self->{made}, rank => 0 } : $mine->[ rand @$mine ];
	my $rank = $what < 0.85 ? $item->{rank} + 1 : '-';
	my $data = { type => 'items', attributes => { name => $item->{name}, rank => $rank } };
	my $started = time;

	$self->_note('?', $item->{name}, $rank);
	my $answer = !$item->{id} ? $self->_ask(POST => '/api/v1/items', { data => $data })
	  : $rank eq '-' ? $self->_ask(DELETE => "/api/v1/items/$item->{id}")
	  : $self->_ask(PATCH => "/api/v1/items/$item->{id}", { data => { %$data, id => $item->{id} } });
	if (!$answer)
	{
		# it may be there or not, so nobody asks for it any more
		@$mine = grep { $_ != $item } @$mine;
		return;
	}
	$item->{rank} = $rank;
	push @$mine, $item unless $item->{id};
	$item->{id} //= $answer->{data}{id};
	@$mine = grep { $_->{rank} ne '-' } @$mine;
	$self->_note('!', $item->{name}, $rank, $item->{id}, sprintf '%.3f', time - $started);
	return if $rank eq '-';

	my $read = $self->_ask(GET => "/api/v1/items/$item->{id}") // return;
	$self->_note(X => "$item->{name} is stale: $read->{data}{attributes}{rank}, not $rank") if $read->{data}{attributes}{rank} != $rank;
	return;
}

# What is wrong with what is there, behind all writes since that time that were
# summed up: each row once, with its last rank, and as many records of it as it
# had writes.
sub compare
{
	my ($class, $cluster, $tenant, $sum, $since) = @_;
	my @wrong;
	my %found;

	for my $row (split /\n/, $cluster->psql(<<~"SQL"))
		with records as (
			select target_id, count(*) filter (where action = 'ENTITY_CREATE') made, count(*) filter (where action = 'ENTITY_UPDATE') changed,
				count(*) filter (where action = 'ENTITY_DELETE') gone, max((changes -> 'rank' ->> 1)::int) told
			from entityapi.audit where tenant_id = '$tenant' and at >= '$since' and outcome = 'SUCCESS' and action like 'ENTITY_%' group by 1)
		select name, i.id, rank, coalesce(made, 0), coalesce(changed, 0), coalesce(gone, 0), told, target_id
		from records r full join (select * from app.item where tenant_id = '$tenant' and created_at >= '$since') i on target_id = i.id::text
		SQL
	{
		my ($name, $id, $rank, $made, $changed, $gone, $told, $target) = split /\|/, $row, -1;

		push @wrong, "$name is there twice" if $id ne '' && $found{$name};
		push @wrong, "rows and records differ: $row"
		  unless $made == 1 && $gone == ($id eq '' ? 1 : 0) && ($id eq '' || $told == $rank && $changed == $rank - 1);
		$found{$name} = $rank if $id ne '';
	}
	for my $name (sort keys %{ { %{ $sum->{stays} }, %{ $sum->{unknown} }, %{ $sum->{made} } } })
	{
		my $rank = $found{$name} // '-';
		my $known = $sum->{stays}{$name} // '-';

		push @wrong, "$name is $rank, not $known"
		  unless $rank eq $known || exists $sum->{unknown}{$name} && $rank eq $sum->{unknown}{$name};
	}
	return @wrong;
}

1;
