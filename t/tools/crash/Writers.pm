package Writers;

# The clients of t/whole/crash.t.  Each is a process that writes until something
# is refused, and notes in a file of its own what it is about to do ("?") and
# what was acknowledged ("!"): what stands there behind the last crash is all
# that anybody may rely on.

use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP ();
use POSIX ();
use Time::HiRes qw(sleep);

use EntityApi::Test;

my $json = JSON::PP->new->utf8->canonical;
my $type = 'application/vnd.api+json';
my $atomic = "$type;ext=\"https://jsonapi.org/ext/atomic\"";

# The world: shim, cluster, token, root, folder, manifests (a hash of files)
sub new
{
	my ($class, %world) = @_;
	return bless {%world}, $class;
}

# -------- what all of them do --------

sub _begin
{
	my ($self, $name) = @_;

	$self->{client} = HTTP::Tiny->new(timeout => 20);
	open $self->{notes}, '>', "$self->{folder}/$name" or die "$name: $!\n";
	$self->{notes}->autoflush(1);
	return;
}

# Before: what is about to be done.  Afterwards: that it was.
sub _intend { my ($self, @words) = @_; print { $self->{notes} } "? @words\n"; return }
sub _done { my ($self, @words) = @_; print { $self->{notes} } "! @words\n"; return }

# True until the time is over, or the server was told to be
sub _goes_on
{
	my ($self) = @_;
	return !$self->{stopped} && !-e "$self->{folder}/stop";
}

# One request.  What is neither acknowledged nor refused by the database's
# absence is a fault.
sub _ask
{
	my ($self, $method, $target, $body, %options) = @_;
	my $media = $options{type} // ($target =~ m{^/api/} ? $type : 'application/json');
	my $answer = $self->{client}->request($method, $self->{shim}->url . $target, {
			headers => {
				authorization => 'Bearer ' . ($options{token} // $self->{token}),
				defined $body ? ('content-type' => $media) : (),
				$target =~ m{^/api/} ? (accept => $media) : () },
			defined $body ? (content => $json->encode($body)) : () });

	return ($answer->{content} // '') eq '' ? {} : $json->decode($answer->{content}) if $answer->{success};
	$self->{stopped} = 1;
	print { $self->{notes} } 'X ' . "$method $target: $answer->{status} $answer->{content}" =~ s/\s+/ /gr, "\n"
	  unless $answer->{status} == 503 || $answer->{status} == 599;
	return;
}

# -------- writers of single resources --------

sub _item { my ($mark, $n) = @_; return { type => 'items', attributes => { mark => $mark, n => $n, note => "note $n" } } }

sub writer
{
	my ($self, $name, $run) = @_;
	my @mine;

	$self->_begin("$name.$run");
	for (my $i = 0; $self->_goes_on; $i++)
	{
		my $what = rand;

		if (@mine < 3 || $what < 0.3)
		{
			my $mark = "$run-$name-$i";

			$self->_intend('item', $mark, 1);
			my $made = $self->_ask(POST => '/api/v1/items', { data => _item($mark, 1) }) // last;
			$self->_done('item', $mark, 1);
			push @mine, { mark => $mark, n => 1, id => $made->{data}{id} };
			next;
		}
		my $item = $mine[ rand @mine ];
		my $n = $what < 0.8 ? $item->{n} + 1 : 0;

		$self->_intend('item', $item->{mark}, $n);
		$self->_ask($n ? (PATCH => "/api/v1/items/$item->{id}", { data => { %{ _item($item->{mark}, $n) }, id => $item->{id} } })
			: (DELETE => "/api/v1/items/$item->{id}")) // last;
		$self->_done('item', $item->{mark}, $n);
		$item->{n} = $n;
		@mine = grep { $_->{n} } @mine;
	}
	return;
}

# -------- all or nothing --------

# An item and two parts of it; then another number for the item, and one part
# goes.  So whoever finds one part finds the number 2.
sub batch
{
	my ($self, $name, $run) = @_;

	$self->_begin("$name.$run");
	for (my $i = 0; $self->_goes_on; $i++)
	{
		my $mark = "$run-$name-$i";
		my @parts = map { { op => 'add', data => { type => 'parts', attributes => { mark => $mark },
				relationships => { item => { data => { type => 'items', lid => 'i' } } } } } } 1, 2;

		$self->_intend('batch', $mark, 2);
		my $made = $self->_ask(POST => '/api/v1/operations',
			{ 'atomic:operations' => [ { op => 'add', data => { %{ _item($mark, 1) }, lid => 'i' } }, @parts ] }, type => $atomic) // last;
		$self->_done('batch', $mark, 2);
		my ($item, $part) = map { $_->{data}{id} } @{ $made->{'atomic:results'} };

		$self->_intend('batch', $mark, 1);
		$self->_ask(POST => '/api/v1/operations',
			{ 'atomic:operations' => [
				{ op => 'update', data => { %{ _item($mark, 2) }, id => $item } },
				{ op => 'remove', ref => { type => 'parts', id => $part } } ] }, type => $atomic) // last;
		$self->_done('batch', $mark, 1);
	}
	return;
}

# -------- declarations --------

sub applier
{
	my ($self, $name, $run) = @_;
	my @loss = map { ('--allow-data-loss', $_) } qw(Item.color Item.extras Extra);

	$self->_begin("$name.$run");
	sleep rand 0.1;
	for my $which (@{ $self->{order} })
	{
		last unless $self->_goes_on;
		$self->_intend('apply', $which);
		my $result = $self->{cluster}->try_apply('--wait', 2, @loss, $self->{manifests}{$which});

		if ($result->{status} != 0)
		{
			my $why = $result->{err} =~ s/\s+/ /gr;

			print { $self->{notes} } "X apply $which: $why\n"
			  unless $why =~ /connect|terminat|shutting down|starting up|recovery|server closed|does not answer|was shut down|lock/;
			last;
		}
		$self->_done('apply', $which);
	}
	return;
}

# -------- tenants come and go --------

sub eraser
{
	my ($self, $name, $run) = @_;
	my $i = 0;

	$self->_begin("$name.$run");
	for my $left (@{ $self->{left} })
	{
		return unless $self->_goes_on;
		$self->_delete_tenant($left) // return;
	}
	while ($self->_goes_on)
	{
		my $slug = "t$run-" . ++$i;

		$self->_intend('tenant', $slug);
		my $made = $self->_ask(POST => '/manage/tenants', { name => $slug, slug => $slug }, token => $self->{root}) // return;
		$self->_done('tenant', $slug, $made->{id});
		$self->_intend('fill', $made->{id});
		$self->{cluster}->try_psql("select public.fill('$made->{id}')")->{status} == 0 or return;
		$self->_done('fill', $made->{id});
		$self->_delete_tenant($made->{id}) // return;
	}
	return;
}

sub _delete_tenant
{
	my ($self, $id) = @_;

	$self->_intend('delete', $id);
	my $answer = $self->_ask(DELETE => "/manage/tenants/$id", undef, token => $self->{root}) // return;
	$self->_done('delete', $id);
	return $answer;
}

# -------- processes --------

# Begin all of them; returns their process ids.
sub begin
{
	my ($self, $run, %kinds) = @_;
	my @pids;

	for my $name (sort keys %kinds)
	{
		my $kind = $kinds{$name};
		my $seed = int rand 2**31;
		my $pid = fork // die "fork: $!\n";

		if ($pid == 0)
		{
			srand $seed;
			eval { $self->$kind($name, $run); 1 } or print { $self->{notes} } "X $@";
			POSIX::_exit(0);
		}
		push @pids, $pid;
	}
	return @pids;
}

1;
