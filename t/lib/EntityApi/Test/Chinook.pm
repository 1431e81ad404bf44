package EntityApi::Test::Chinook;

=head1 NAME

EntityApi::Test::Chinook - the data of the Chinook store, and how to load it

=head1 DESCRIPTION

The source says what was sold by single tracks only.  Here each tenth line of an
invoice sells the whole album of its track instead, so that both members of the
one-of occur.

=cut

use strict;
use warnings;
use utf8;

use Exporter qw(import);

use EntityApi::Test;

our @EXPORT = qw(%row @kinds %collection read_source rows ref_rows cents
  sells_album track_of album_of artist_of playlists_of identifier resource load);

# Rows by their old ids, and rows that refer to another one by its old id
our %row;
my %referring;
my $chinook;

=head1 FUNCTIONS

=head2 read_source($path)

Read the data; everything else here works on it.

=cut

sub read_source
{
	my ($path) = @_;

	$chinook = EntityApi::Test::json()->decode(EntityApi::Test::slurp($path));
	for my $kind (keys %$chinook)
	{
		for my $row (@{ $chinook->{$kind} })
		{
			$row{$kind}{ $row->{"${kind}Id"} } = $row
			  if defined $row->{"${kind}Id"};
			for my $key (grep { defined $row->{$_} && /Id$|^ReportsTo$/ } keys %$row)
			{
				push @{ $referring{"$kind.$key"}{ $row->{$key} } }, $row;
			}
		}
	}
	return;
}

=head2 rows($kind, $condition), ref_rows("$kind.$column", $id)

All rows of a kind, or those for which a function of C<$_> holds; the rows of a
kind that refer by a column to an old id.

=head2 cents($amount), sells_album($line)

=head2 track_of($row), album_of($row), artist_of($row), playlists_of($track)

What a row leads to; of playlists, the old ids.

=cut

sub rows
{
	my ($kind, $condition) = @_;

	return grep { $condition ? $condition->() : 1 } @{ $chinook->{$kind} };
}

sub ref_rows
{
	my ($path, $id) = @_;

	return @{ $referring{$path}{$id} // [] };
}

sub cents
{
	my ($amount) = @_;

	return sprintf('%.2f', $amount) =~ tr/.//dr;
}

sub sells_album
{
	my ($line) = @_;

	return $line->{InvoiceLineId} % 10 == 0;
}

sub track_of     { return $row{Track}{ $_[0]{TrackId} } }
sub album_of     { return $row{Album}{ $_[0]{AlbumId} } }
sub artist_of    { return $row{Artist}{ album_of($_[0])->{ArtistId} } }
sub playlists_of { return map { $_->{PlaylistId} } ref_rows('PlaylistTrack.TrackId', $_[0]{TrackId}) }

# -------- how it becomes resources --------

# What an attribute is made of: a column, or a column and a conversion
my %convert = (
	optional => sub { $_[0] eq '' ? undef : $_[0] },
	money    => sub { sprintf '%.2f', $_[0] },
	date     => sub { substr $_[0], 0, 10 },
	time     => sub { "$_[0]Z" },
);

# What @kinds tells of each: the name in the source, the collection, attributes
# and relationships, in the order of loading.  A relationship: its name, the type it refers to,
# and the old id, or a function that gives the type and the old id or ids.
our @kinds = (
	[ Genre     => 'genres', { name => 'Name' } ],
	[ MediaType => 'mediaTypes', { name => 'Name' } ],
	[ Artist    => 'artists', { name => 'Name' } ],
	[ Album     => 'albums', { title => 'Title' }, { artist => [ Artist => 'ArtistId' ] } ],
	[   Track => 'tracks',
		{   name         => 'Name',
			composer     => [ optional => 'Composer' ],
			milliseconds => 'Milliseconds',
			bytes        => 'Bytes',
			unitPrice    => [ money => 'UnitPrice' ] },
		{   album     => [ Album     => 'AlbumId' ],
			genre     => [ Genre     => 'GenreId' ],
			mediaType => [ MediaType => 'MediaTypeId' ] } ],
	[   Playlist => 'playlists',
		{ name   => 'Name' },
		{ tracks => sub {
				Track => [ map { $_->{TrackId} }
					  ref_rows('PlaylistTrack.PlaylistId', $_[0]{PlaylistId}) ] } } ],
	[   Employee => 'employees',
		{   firstName => 'FirstName',
			lastName  => 'LastName',
			title     => 'Title',
			birthDate => [ date => 'BirthDate' ],
			hireDate  => [ time => 'HireDate' ],
			email     => 'Email' },
		{ reportsTo => [ Employee => 'ReportsTo' ] } ],
	[   Customer => 'customers',
		{   firstName => 'FirstName',
			lastName  => 'LastName',
			company   => [ optional => 'Company' ],
			city      => 'City',
			country   => 'Country',
			email     => 'Email' },
		{ supportRep => [ Employee => 'SupportRepId' ] } ],
	[   Invoice => 'invoices',
		{   invoiceDate    => [ time => 'InvoiceDate' ],
			billingCity    => 'BillingCity',
			billingCountry => 'BillingCountry',
			total          => [ money => 'Total' ] },
		{ customer => [ Customer => 'CustomerId' ] } ],
	[   InvoiceLine => 'invoiceLines',
		{ unitPrice => [ money => 'UnitPrice' ], quantity => 'Quantity' },
		{   invoice => [ Invoice => 'InvoiceId' ],
			item    => sub {
				sells_album($_[0])
				  ? (Album => track_of($_[0])->{AlbumId})
				  : (Track => $_[0]{TrackId}) } } ],
);
our %collection = map { $_->[0] => $_->[1] } @kinds;

=head2 identifier($ids, $kind, $old), resource($ids, $kind, $row)

Linkage to what was an old id (or ids), and the primary data that creates a row:
C<$ids> maps kinds and old ids to new ones, C<$kind> is an entry of @kinds in the
latter.

=cut

sub identifier
{
	my ($ids, $kind, $old) = @_;

	return undef unless defined $old;
	return [ map { identifier($ids, $kind, $_) } @$old ] if ref $old;
	return { type => lc $collection{$kind}, id => $ids->{$kind}{$old} };
}

sub resource
{
	my ($ids, $kind, $row) = @_;
	my (undef, $collection, $attributes, $relationships) = @$kind;
	my %resource = (type => lc $collection);

	for my $name (keys %$attributes)
	{
		my ($conversion, $column) =
		  ref $attributes->{$name} ? @{ $attributes->{$name} } : (undef, $attributes->{$name});
		my $value = $row->{$column};

		$resource{attributes}{$name} =
		  $conversion ? $convert{$conversion}->($value) : $value;
	}
	for my $name (keys %{ $relationships // {} })
	{
		my $how = $relationships->{$name};
		my ($to, $old) = ref $how eq 'CODE' ? $how->($row) : ($how->[0], $row->{ $how->[1] });

		$resource{relationships}{$name}{data} = identifier($ids, $to, $old);
	}
	return \%resource;
}

=head2 load($shim, $token, $batch)

Create everything; returns the new ids by kind and old id.  With C<$batch>,
requests create so many resources each, as atomic operations; those with many
references are created one by one all the same.

=cut

sub load
{
	my ($shim, $token, $batch) = @_;
	my $type = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
	my %ids;

	for my $kind (@kinds)
	{
		my ($name, $collection) = @$kind;

		my @rows = @{ $chinook->{$name} };

		# an employee may refer to one before
		while (my @some = splice @rows, 0, $batch && $name !~ /^(?:Playlist|Employee)$/ ? $batch : 1)
		{
			my @resources = map { resource(\%ids, $kind, $_) } @some;
			my $document = @some == 1
			  ? $shim->must(201, POST => "/api/v1/$collection", { token => $token, json => { data => $resources[0] } })
			  : $shim->must(200, POST => '/api/v1/operations', {
				token => $token,
				headers => { 'Content-Type' => $type, Accept => $type },
				json => { 'atomic:operations' => [ map { { op => 'add', data => $_ } } @resources ] } });
			my @made = @some == 1 ? $document->{data} : map { $_->{data} } @{ $document->{'atomic:results'} };

			$ids{$name}{ $some[$_]{"${name}Id"} } = $made[$_]{id} for 0 .. $#some;
		}
	}
	return \%ids;
}

1;
