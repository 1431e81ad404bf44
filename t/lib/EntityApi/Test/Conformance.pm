package EntityApi::Test::Conformance;

=head1 NAME

EntityApi::Test::Conformance - resources, relationships and batches in TAP tests

=head1 SYNOPSIS

	my $editor = EntityApi::Test::Conformance->begin('library');
	my $ann = $editor->made(authors => { name => 'Ann' });
	my $work = $editor->made(works => { title => 'A work' }, { author => $ann });

	is($editor->linked($work, 'author'), $ann->{id});

=head1 DESCRIPTION

An L<EntityApi::Test::Cases> that knows the manifests of t/conformance.  A
resource is the C<data> of the answer that made it; wherever a resource is
expected, anything with C<type> and C<id> will do.

=cut

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

use parent -norequire, 'EntityApi::Test::Cases';

our $nobody = '01980000-0000-7000-8000-000000000000';
our $type = 'application/vnd.api+json';
our $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

my $json = JSON::PP->new->utf8->canonical->allow_nonref;

=head1 METHODS

=head2 begin($folder, %options)

A cluster with the manifests of that folder, a shim, and the tenants Acme and
Globex.  Returns the Editor of Acme; C<reader> is a Reader of Acme, C<other> the
Editor of Globex, C<cluster> and C<shim> what their names say.  Options: C<conf>,
as for the cluster; C<version>, of the API (1); C<here>, with Acme on the node
that is asked by SQL.

=cut

sub begin
{
	my ($class, $folder, %options) = @_;
	my $cluster = EntityApi::Test->cluster(conf => $options{conf} // []);

	$cluster->apply(EntityApi::Test::checkout() . "/t/data/conformance/$folder");
	my $shim = EntityApi::Test->shim($cluster, %{ $options{shim} // {} });
	my $acme = $options{here} ? $shim->tenant_here('acme') : $shim->tenant('acme');
	my $globex = $shim->tenant('globex');
	my $editor = $class->new($shim, $shim->user($acme->{id}, 'editor', ['Editor']),
		'/api/v' . ($options{version} // 1));

	$editor->{cluster} = $cluster;
	$editor->{tenant} = $acme->{id};
	$editor->{reader} = $editor->as($shim->user($acme->{id}, 'reader', ['Reader']));
	$editor->{other} = $editor->as($shim->user($globex->{id}, 'other', ['Editor']));
	return $editor;
}

sub cluster { return $_[0]{cluster} }
sub shim    { return $_[0]{shim} }
sub reader  { return $_[0]{reader} }
sub other   { return $_[0]{other} }

=head2 identifier($resource), linkage($value)

A resource identifier; the linkage of undef, a resource or an array of them.

=cut

sub identifier
{
	my ($self, $resource) = @_;

	return { map { $_ => $resource->{$_} } grep { exists $resource->{$_} } qw(type id lid) };
}

sub linkage
{
	my ($self, $value) = @_;

	return undef unless defined $value;
	return [ map { $self->identifier($_) } @$value ] if ref $value eq 'ARRAY';
	return $self->identifier($value);
}

=head2 made($collection, \%attributes, \%relationships)

Create a resource.  C<document> gives the data that does it.

=cut

sub document
{
	my ($self, $collection, $attributes, $relationships) = @_;

	return {
		type       => lc $collection,
		attributes => $attributes,
		$relationships
		? (relationships => {
				map { $_ => { data => $self->linkage($relationships->{$_}) } } keys %$relationships })
		: () };
}

sub made
{
	my ($self, $collection, @members) = @_;

	return $self->good(201, POST => "/$collection",
		data => $self->document($collection, @members))->{json}{data};
}

=head2 path($resource, @more), current($resource), version($resource), gone($resource)

Its path below the base; the resource as it is now; its version; whether it is
404.

=cut

sub path
{
	my ($self, $resource, @more) = @_;

	return join '/', '', $resource->{type}, $resource->{id}, @more;
}

sub current
{
	my ($self, $resource) = @_;

	return $self->good(200, GET => $self->path($resource))->{json}{data};
}

sub version
{
	my ($self, $resource) = @_;

	return $self->current($resource)->{meta}{version};
}

sub gone
{
	my ($self, $resource) = @_;

	return $self->call(GET => $self->path($resource))->{status} == 404;
}

=head2 update($resource, \%attributes, \%relationships)

PATCH it, whatever its version is; returns the answer.

=head2 relate($method, $resource, $relationship, $value, %headers)

Write a relationship, whatever the version is, unless If-Match is given.

=head2 linked($resource, $relationship)

The ids that its relationship endpoint gives: sorted, and joined by spaces.

=cut

sub update
{
	my ($self, $resource, @members) = @_;

	return $self->call(PATCH => $self->path($resource),
		data => { %{ $self->document($resource->{type}, @members) }, id => $resource->{id} },
		headers => { 'If-Match' => '*' });
}

sub relate
{
	my ($self, $method, $resource, $relationship, $value, %headers) = @_;

	return $self->call($method => $self->path($resource, 'relationships', $relationship),
		data    => $self->linkage($value),
		headers => { 'If-Match' => '*', %headers });
}

sub linked
{
	my ($self, $resource, $relationship) = @_;
	my $data = $self->good(200,
		GET => $self->path($resource, 'relationships', $relationship))->{json}{data};

	return ids(ref $data eq 'ARRAY' ? @$data : $data // ());
}

# Sorted ids of resources, as one text
sub ids
{
	my (@resources) = @_;

	return join ' ', sort map { $_->{id} } @resources;
}

=head2 batch(@operations)

An atomic request; returns the answer.

=head2 batch_refused($name, $status, $code, $pointer, @operations)

One that must fail as told, with the media type that its answers have.

=cut

sub batch
{
	my ($self, @operations) = @_;

	return $self->call(POST => '/operations',
		body    => $json->encode({ 'atomic:operations' => \@operations }),
		headers => { 'Content-Type' => $atomic });
}

sub batch_refused
{
	my ($self, $name, $status, $code, $pointer, @operations) = @_;

	return $self->batch_body_refused($name, $status, $code, $pointer,
		$json->encode({ 'atomic:operations' => \@operations }));
}

sub batch_body_refused
{
	my ($self, $name, $status, $code, $pointer, $body) = @_;
	my $answer = $self->call(POST => '/operations', body => $body,
		headers => { 'Content-Type' => $atomic });
	my ($error, @others) = @{ $answer->{json}{errors} // [] };
	my @problems;

	push @problems, "status $answer->{status}, not $status"
	  if $answer->{status} != $status;
	push @problems, 'members ' . join ' ', sort keys %{ $answer->{json} // {} }
	  if grep { !/^(?:errors|meta|links|jsonapi)$/ } keys %{ $answer->{json} // {} };
	push @problems, "content type $answer->{headers}{'content-type'}"
	  if $answer->{headers}{'content-type'} ne $atomic;
	push @problems, 'status of an error'
	  if grep { ($_->{status} // '') ne $status } $error, @others;
	push @problems, "code, not $code"
	  if defined $code && ($error->{code} // '') ne $code;
	push @problems, map { "pointer to nothing: $_" } _lost_pointers($answer, eval { $json->decode($body) });
	push @problems, "pointer, not $pointer"
	  if defined $pointer && !grep { ($_->{source}{pointer} // 'none') eq $pointer } $error, @others;
	ok(!@problems, $name)
	  or diag map({ "$_\n" } @problems), $answer->{body};
	return $answer;
}

=head2 refused(...)

As in L<EntityApi::Test::Cases>; a pointer must lead to something in the document
that was sent, too.

=cut

sub refused
{
	my ($self, $name, $status, $code, $source, $method, $target, %options) = @_;
	my $answer = $self->SUPER::refused($name, $status, $code, $source, $method, $target, %options);
	my $sent = exists $options{data} ? { data => $options{data} }
	  : $options{json} // eval { $json->decode(EntityApi::Test::utf8_bytes($options{body} // '')) };
	my @lost = _lost_pointers($answer, $sent);

	ok(!@lost, "$name: pointers") or diag "@lost" if @lost;
	return $answer;
}

# Pointers of errors that lead to nothing in the document sent
sub _lost_pointers
{
	my ($answer, $sent) = @_;

	return grep { !_leads($sent, $_) }
	  grep { defined } map { $_->{source}{pointer} } @{ $answer->{json}{errors} // [] };
}

# Does a JSON pointer (RFC 6901) lead to something?
sub _leads
{
	my ($at, $pointer) = @_;
	my (undef, @steps) = split m{/}, $pointer, -1;

	for my $step (@steps)
	{
		$step =~ s/~1/\//g;
		$step =~ s/~0/~/g;
		if (ref $at eq 'HASH' && exists $at->{$step})
		{
			$at = $at->{$step};
		}
		elsif (ref $at eq 'ARRAY' && $step =~ /^\d+$/ && $step < @$at)
		{
			$at = $at->[$step];
		}
		else
		{
			return 0;
		}
	}
	return 1;
}

=head2 total($collection)

How many of them the caller sees.

=cut

sub total
{
	my ($self, $collection) = @_;

	return $self->good(200, GET => "/$collection?page[size]=1")->{json}{meta}{pagination}{totalRecords};
}

=head1 FUNCTIONS

=head2 at_once(@actions)

Run them in a process each, all starting at the same moment.  Returns the
lines that they return.

=cut

sub at_once
{
	my (@actions) = @_;
	my @readers;

	pipe my $barrier, my $gate or die "pipe: $!\n";
	for my $action (@actions)
	{
		pipe my $reader, my $writer or die "pipe: $!\n";
		my $pid = fork // die "fork: $!\n";
		if (!$pid)
		{
			close $gate;
			sysread $barrier, my $nothing, 1;
			my $line = eval { $action->() } // "died: $@";
			syswrite $writer, $line;
			POSIX::_exit(0);
		}
		close $writer;
		push @readers, [ $reader, $pid ];
	}
	close $gate;

	my @lines;
	for (@readers)
	{
		my ($reader, $pid) = @$_;
		local $/;
		push @lines, scalar readline($reader) // '';
		waitpid $pid, 0;
	}
	return @lines;
}

1;
