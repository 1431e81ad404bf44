# The Chinook store: real data, loaded through the API by two tenants, and read
# back in many ways.  What is expected is computed from the source.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use List::Util qw(sum0 uniq);
use POSIX ();
use Storable ();
use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;
use EntityApi::Test::Chinook;

binmode Test::More->builder->$_, ':utf8'
  for qw(output failure_output todo_output);

my $checkout = EntityApi::Test::checkout();
my $source =
  ($ENV{ENTITYAPI_SHARED} // "$checkout/../shared") . '/data/chinook/chinook.json';
plan skip_all => "the Chinook data is not there: $source" unless -e $source;

read_source($source);
my $nobody = '01980000-0000-7000-8000-000000000000';

# --- the tenants ------------------------------------------------------------

my $cluster = EntityApi::Test->cluster;
$cluster->apply("$checkout/t/data/chinook");
my $shim = EntityApi::Test->shim($cluster);

# Log in with a temporary password, be stopped, change it.
sub first_login
{
	my ($username, $temporary) = @_;
	my $first = $shim->login($username, $temporary);

	ok($first->{forcePasswordChange}, "$username has to change the password");
	is($shim->http(GET => '/api/v1/artists', { token => $first })->{status},
		403, 'and gets nothing before');
	my $tokens = $shim->must(200, POST => '/auth/change-password',
		{   token => $first,
			json  => {
				currentPassword => $temporary,
				newPassword     => "entirely new for $username" } });
	ok(!exists $tokens->{forcePasswordChange}, 'a new one is taken');
	return $tokens;
}

# A tenant with its administrator, who makes a manager and a listener
sub tenant
{
	my ($slug) = @_;
	my $tenant = $shim->must(201, POST => '/manage/tenants',
		{   token => $shim->superadmin,
			json  => {
				name  => "Chinook $slug",
				slug  => $slug,
				admin => {
					username          => "admin.$slug",
					email             => "admin\@$slug.example",
					temporaryPassword => 'temporary-word-1' } } });
	my $admin = first_login("admin.$slug", 'temporary-word-1');
	my %tokens = (tenant => $tenant->{id}, admin => $admin);

	for my $role (qw(Manager Listener))
	{
		my $username = lc "$role.$slug";

		$shim->must(201, POST => "/manage/tenants/$tenant->{id}/users",
			{   token => $admin,
				json  => {
					username          => $username,
					roles             => [$role],
					temporaryPassword => 'temporary-word-2' } });
		$tokens{ lc $role } = first_login($username, 'temporary-word-2');
	}
	return \%tokens;
}

my @tenants = (tenant('north'), tenant('south'));

# Each tenant has a client process of its own; one creates resources one by one,
# the other many at once.
my $began = time;
my @clients;
for my $tenant (@tenants)
{
	my $file = EntityApi::Test::folder() . '/ids';
	my $pid = fork // die "fork: $!\n";

	if ($pid == 0)
	{
		my $done = eval { Storable::store(load($shim, $tenant->{manager}, $tenant == $tenants[1] ? 50 : undef), $file); 1 };
		print STDERR $@ unless $done;
		POSIX::_exit($done ? 0 : 1);
	}
	push @clients, [ $pid, $file, $tenant ];
}
for my $client (@clients)
{
	my ($pid, $file, $tenant) = @$client;

	waitpid $pid, 0;
	is($?, 0, 'everything was accepted') or BAIL_OUT('there is nothing to look at');
	$tenant->{ids} = Storable::retrieve($file);
}
note sprintf 'loaded in %.1f s', time - $began;

# As autovacuum does, which tests go without
$cluster->psql('analyze');

my ($north, $south) = @tenants;
my $manager = $north->{manager};
my $ids = $north->{ids};

# New ids, of the first tenant, back to the old ones
my %old;
for my $kind (keys %$ids)
{
	$old{ $ids->{$kind}{$_} } = $_ for keys %{ $ids->{$kind} };
}

# --- asking -----------------------------------------------------------------

sub escape
{
	my ($text) = @_;

	utf8::encode($text);
	return $text =~ s/([^A-Za-z0-9_.~-])/sprintf '%%%02X', ord $1/ger;
}

sub get
{
	my ($target, $token) = @_;

	return $shim->must(200, GET => "/api/v1/$target", { token => $token // $manager });
}

sub total
{
	my ($collection, $filter, $token) = @_;
	my $query = 'page[size]=1' . (defined $filter ? '&filter=' . escape($filter) : '');

	return get("$collection?$query", $token)->{meta}{pagination}{totalRecords};
}

# Follow "next" from page to page; returns the bodies as they came.
sub walk
{
	my ($target) = @_;
	my @pages;

	for ($target = "/api/v1/$target"; defined $target;)
	{
		my $answer = $shim->http(GET => $target, { token => $manager });

		die "$target: $answer->{status}\n$answer->{body}\n" if $answer->{status} != 200;
		push @pages, $answer;
		$target = $answer->{json}{links}{next};
		die "no end\n" if @pages > 1000;
	}
	return @pages;
}

# The old ids of the resources of a list, or of linkage
sub old_ids
{
	my ($data) = @_;

	return [ map { $old{ $_->{id} } } @$data ];
}

sub sorted
{
	return [ sort { $a <=> $b } @_ ];
}

sub by_id
{
	my ($document) = @_;

	return map { $_->{id} => $_ } @{ $document->{included} };
}

# --- counts -----------------------------------------------------------------

subtest 'counts' => sub {
	for my $tenant (@tenants)
	{
		for my $kind (@kinds)
		{
			is(total($kind->[1], undef, $tenant->{manager}),
				scalar rows($kind->[0]), "all $kind->[1]");
		}
	}
	is(total('invoicelines'), total('invoiceLines'), 'a collection in lower case');
	is_deeply(
		get('tracks?page[size]=100&page[number]=36')->{meta}{pagination},
		{ number => 36, size => 100, totalPages => 36, totalRecords => 3503 },
		'the last page');
	is(scalar @{ get('tracks?page[size]=100&page[number]=36')->{data} }, 3, 'is short');
	my $beyond = get('tracks?page[size]=100&page[number]=37');
	is_deeply($beyond->{data}, [], 'the page after it is empty');
	is($beyond->{meta}{pagination}{totalRecords}, 3503, 'and counts all the same');
	my $uncounted = get('tracks?page[totals]=false');
	is_deeply($uncounted->{meta}{pagination}, { number => 1, size => 20 }, 'no totals on demand');
};

# --- what was written is what is read ---------------------------------------

subtest 'resources' => sub {
	my $document = get("tracks/$ids->{Track}{1}");
	my $data = $document->{data};

	is($data->{type}, 'tracks', 'type');
	is_deeply(
		$data->{attributes},
		{   name         => 'For Those About To Rock (We Salute You)',
			composer     => 'Angus Young, Malcolm Young, Brian Johnson',
			milliseconds => 343719,
			bytes        => 11170334,
			unitPrice    => 0.99 },
		'attributes');
	is_deeply([ sort keys %{ $data->{relationships} } ],
		[qw(album genre mediaType playlists)], 'relationships');
	is_deeply($data->{relationships}{album}{data},
		{ type => 'albums', id => $ids->{Album}{1} }, 'to one');
	is($data->{relationships}{album}{links}{self},
		"/api/v1/tracks/$ids->{Track}{1}/relationships/album", 'link of a relationship');
	is($data->{links}{self}, "/api/v1/tracks/$ids->{Track}{1}", 'link of the resource');
	is_deeply($document->{jsonapi}, { version => '1.1' }, 'jsonapi');

	my $line = get("invoiceLines/$ids->{InvoiceLine}{1}")->{data};
	is($line->{type}, 'invoicelines', 'a type of two words');

	my $adams = get("employees/$ids->{Employee}{1}")->{data};
	is($adams->{attributes}{birthDate}, '1962-02-18', 'date');
	is($adams->{attributes}{hireDate}, '2002-08-14T00:00:00Z', 'datetime');

	for my $kind (@kinds)
	{
		my ($name, $collection) = @$kind;
		my $wrong = 0;

		for my $page (walk("$collection?page[size]=100&page[totals]=false"))
		{
			for my $data (@{ $page->{json}{data} })
			{
				my $expected =
				  resource($ids, $kind, $row{$name}{ $old{ $data->{id} } })->{attributes};
				# Both as text: 0.99 and "0.99" are the same here.
				for (keys %$expected)
				{
					no warnings 'uninitialized';
					my $is = $data->{attributes}{$_};
					$is = sprintf '%.2f', $is if /^(?:unitPrice|total)$/;
					$wrong++ if $is ne $expected->{$_};
				}
			}
		}
		is($wrong, 0, "attributes of all $collection");
	}
};

# --- filters ----------------------------------------------------------------

subtest 'unicode' => sub {
	for my $name ('Antônio Carlos Jobim', 'Mötley Crüe', 'Legião Urbana', 'AC/DC',
		'Chico Science & Nação Zumbi')
	{
		my $found = get('artists?filter=' . escape("name=='$name'"))->{data};
		is_deeply([ map { $_->{attributes}{name} } @$found ], [$name], $name);
	}
	is(total('customers', 'firstName==Luís'),
		scalar rows('Customer', sub { $_->{FirstName} eq 'Luís' }), 'bare');
	is(total('artists', q{name=ilike='%VINíCIUS%'}),
		scalar rows('Artist', sub { $_->{Name} =~ /vinícius/i }), 'ilike');
	is(total('artists', q{name=like='%VINíCIUS%'}), 0, 'like knows case');
	is(total('artists', q{name=like='%í%'}),
		scalar rows('Artist', sub { $_->{Name} =~ /í/ }), 'like');
	is(total('artists', q{name=like='____'}),
		scalar rows('Artist', sub { length $_->{Name} == 4 }), 'characters, not bytes');
	is(total('artists', q{name=='%í%'}), 0, 'no wildcards in ==');
	is(total('playlists', 'name=="90’s Music"'), 1, 'a typographic apostrophe');
	is(total('tracks', q{name=='Ain\\\\'t Talkin\\\\' \\\\'bout Love'} =~ s/\\\\/\\/gr),
		scalar rows('Track', sub { $_->{Name} eq q{Ain't Talkin' 'bout Love} }),
		'escaped quotes');
	is(total('customers', 'city==São José dos Campos' =~ s/==(.*)/=='$1'/r), 1, 'city');
	is_deeply(
		get('customers?filter=city==%22S%C3%A3o+Jos%C3%A9+dos+Campos%22')->{data}[0]{attributes}{lastName},
		'Gonçalves', 'encoded by hand, with pluses');
};

subtest 'filters' => sub {
	my %nulls = (composer => scalar rows('Track', sub { $_->{Composer} eq '' }));

	is(total('tracks', 'composer=isnull=true'), $nulls{composer}, 'isnull');
	is(total('tracks', 'composer=isnull=false'), 3503 - $nulls{composer}, 'is not null');
	is(total('tracks', 'composer!=nothing'), 3503 - $nulls{composer}, '!= excludes nulls');
	is(total('tracks', 'milliseconds=gt=600000;unitPrice==0.990'),
		scalar rows('Track', sub { $_->{Milliseconds} > 600000 && cents($_->{UnitPrice}) == 99 }),
		'and');
	is(total('tracks', 'milliseconds<100000,bytes>=1000000000'),
		scalar rows('Track', sub { $_->{Milliseconds} < 100000 || $_->{Bytes} >= 1e9 }), 'or');
	is(total('tracks', '(milliseconds<200000,milliseconds>400000);unitPrice==1.99'),
		scalar rows('Track', sub {
				($_->{Milliseconds} < 200000 || $_->{Milliseconds} > 400000)
				  && cents($_->{UnitPrice}) == 199
			}), 'grouped');
	is(total('customers', 'country=in=(Brazil,Canada,"United Kingdom")'),
		scalar rows('Customer', sub { $_->{Country} =~ /^(?:Brazil|Canada|United Kingdom)$/ }), 'in');
	is(total('customers', 'country=out=(USA,Brazil)'),
		scalar rows('Customer', sub { $_->{Country} !~ /^(?:USA|Brazil)$/ }), 'out');
	is(total('invoices', 'invoiceDate=ge=2023-01-01T00:00:00Z;invoiceDate<2024-01-01'),
		scalar rows('Invoice', sub { $_->{InvoiceDate} =~ /^2023/ }), 'dates');
	is(total('invoices', 'invoiceDate==2021-01-01T02:00:00+02:00'),
		scalar rows('Invoice', sub { $_->{InvoiceDate} eq '2021-01-01T00:00:00' }), 'another offset');
	is(total('employees', 'reportsTo=isnull=true'), 1, 'a to-one that is empty');
	is(total('tracks', "id==$ids->{Track}{42}"), 1, 'id');
};

subtest 'paths' => sub {
	my @rows;

	is(total('tracks', q{album.artist.name==Queen}),
		scalar rows('Track', sub { artist_of($_)->{Name} eq 'Queen' }), 'two to one');
	is(total('tracks', q{album.id==} . $ids->{Album}{1}), scalar ref_rows('Track.AlbumId', 1),
		'the id at the end');
	is(total('customers', 'supportRep.reportsTo.lastName==Edwards'),
		scalar rows('Customer', sub {
				my $boss = $row{Employee}{ $_->{SupportRepId} }{ReportsTo};
				$row{Employee}{$boss}{LastName} eq 'Edwards'
			}), 'through the self reference');
	is(total('employees', 'reportsTo.reportsTo=isnull=true'),
		scalar rows('Employee', sub {
				!defined $_->{ReportsTo}
				  || !defined $row{Employee}{ $_->{ReportsTo} }{ReportsTo}
			}), 'null at the end of an empty path, too');
	is(total('customers', 'invoices.total=gt=15'),
		scalar rows('Customer', sub {
				grep { cents($_->{Total}) > 1500 } ref_rows('Invoice.CustomerId', $_->{CustomerId})
			}), 'to many');
	is(total('employees', 'reports.lastName=in=(King,Callahan)'), 1, 'no row twice');
	is(total('artists', 'albums.tracks.genre.name==Jazz'),
		scalar rows('Artist', sub {
				grep { $row{Genre}{ $_->{GenreId} }{Name} eq 'Jazz' }
				  map { ref_rows('Track.AlbumId', $_->{AlbumId}) }
				  ref_rows('Album.ArtistId', $_->{ArtistId})
			}), 'to many, twice');
	is(total('customers', 'invoices.total==13.86;invoices.billingCountry==Germany'),
		scalar rows('Customer', sub {
				my @invoices = ref_rows('Invoice.CustomerId', $_->{CustomerId});
				(grep { cents($_->{Total}) == 1386 } @invoices)
				  && (grep { $_->{BillingCountry} eq 'Germany' } @invoices)
			}), 'two conditions on a to-many are independent');

	for my $name (qw(Grunge Music))
	{
		is(total('tracks', "playlists.name==$name"),
			scalar rows('Track', sub {
					grep { $row{Playlist}{$_}{Name} eq $name } playlists_of($_)
				}), "many to many, inverse: $name");
	}
	is(total('playlists', q{tracks.album.artist.name=='Pearl Jam'}),
		scalar rows('Playlist', sub {
				grep { artist_of(track_of($_))->{Name} eq 'Pearl Jam' }
				  ref_rows('PlaylistTrack.PlaylistId', $_->{PlaylistId})
			}), 'many to many, and on');
	is(total('playlists', 'tracks.playlists.name==Grunge'),
		scalar(uniq map { playlists_of($_) } grep { grep { $_ == 16 } playlists_of($_) } rows('Track')),
		'there and back');

	is(total('invoiceLines', q{item.title=='Greatest Hits'}),
		scalar rows('InvoiceLine', sub {
				sells_album($_) && album_of(track_of($_))->{Title} eq 'Greatest Hits'
			}), 'an attribute of one member');
	is(total('invoiceLines', 'item.title=isnull=true'),
		scalar rows('InvoiceLine', sub { !sells_album($_) }), 'is null on the others');
	is(total('invoiceLines', 'item.milliseconds=gt=1000000'),
		scalar rows('InvoiceLine', sub {
				!sells_album($_) && track_of($_)->{Milliseconds} > 1000000
			}), 'an attribute of the other');
	is(total('invoiceLines', q{item.artist.name=='Iron Maiden'}),
		scalar rows('InvoiceLine', sub {
				sells_album($_) && artist_of(track_of($_))->{Name} eq 'Iron Maiden'
			}), 'and on from a member');
	is(total('invoiceLines', "item.id==$ids->{Album}{3}"),
		scalar rows('InvoiceLine', sub { sells_album($_) && track_of($_)->{AlbumId} == 3 }),
		'the id of a member');
	is(total('invoices', q{invoiceLines.item.album.artist.name=='Iron Maiden'}),
		scalar rows('Invoice', sub {
				grep { !sells_album($_) && artist_of(track_of($_))->{Name} eq 'Iron Maiden' }
				  ref_rows('InvoiceLine.InvoiceId', $_->{InvoiceId})
			}), 'five hops');
};

# --- pages, sort, fields ----------------------------------------------------

subtest 'sums over pages' => sub {
	my @pages = walk('invoices?page[size]=100&sort=-total');
	my (@totals, @seen);

	for my $page (@pages)
	{
		push @seen, @{ old_ids($page->{json}{data}) };
		# From the bytes: a number that passed through a double proves nothing.
		push @totals, $page->{body} =~ /"total":\s*(-?[0-9.]+)/g;
	}
	is(scalar @pages, 5, 'five pages');
	is_deeply(sorted(@seen), sorted(keys %{ $row{Invoice} }), 'each invoice once');
	ok(!(grep { !/^[0-9]+\.[0-9]{2}$/ } @totals), 'every digit of the scale');
	is(sum0(map { tr/.//dr } @totals), sum0(map { cents($_->{Total}) } rows('Invoice')),
		'the totals add up to the cent');
	is_deeply(
		[ map { tr/.//dr + 0 } @totals ],
		[ sort { $b <=> $a } map { cents($_->{Total}) + 0 } rows('Invoice') ],
		'in descending order');

	my $germany = q{invoice.billingCountry==Germany};
	my @cents = map { map { tr/.//dr } $_->{body} =~ /"unitPrice":\s*([0-9.]+)/g }
	  walk('invoiceLines?page[size]=33&fields[invoicelines]=unitPrice&filter=' . escape($germany));
	is(sum0(@cents),
		sum0(map { cents($_->{Total}) } rows('Invoice', sub { $_->{BillingCountry} eq 'Germany' })),
		'so do the lines of a country');

	my $page = get('invoices?page[number]=2&page[size]=10&sort=-total&filter=total=gt=5');
	for my $name (qw(self first prev next last))
	{
		like($page->{links}{$name}, qr{^/api/v1/invoices\?}, "$name: there");
		like($page->{links}{$name}, qr/sort=-total/, "$name: sort kept");
		like($page->{links}{$name}, qr/filter=total(?:%3D|=)gt(?:%3D|=)5/, "$name: filter kept");
		unlike($page->{links}{$name}, qr/[\[\]]/, "$name: brackets are encoded");
	}
	is_deeply(
		$shim->must(200, GET => $page->{links}{prev}, { token => $manager })->{data},
		get('invoices?page[size]=10&sort=-total&filter=total=gt=5')->{data},
		'prev leads there');
};

subtest 'sort' => sub {
	my @tracks = sort {
		$b->{Milliseconds} <=> $a->{Milliseconds} || $a->{Name} cmp $b->{Name}
	} rows('Track');
	is_deeply(old_ids(get('tracks?sort=-milliseconds,name&page[size]=100')->{data}),
		[ map { $_->{TrackId} } @tracks[ 0 .. 99 ] ], 'two keys');

	# Sorted by code point, as the cluster's locale does
	my @albums = sort {
		$row{Artist}{ $a->{ArtistId} }{Name} cmp $row{Artist}{ $b->{ArtistId} }{Name}
		  || $b->{Title} cmp $a->{Title}
	} rows('Album');
	is_deeply(old_ids(get('albums?sort=artist.name,-title&page[size]=100')->{data}),
		[ map { $_->{AlbumId} } @albums[ 0 .. 99 ] ], 'a to-one path');

	# Ids grow with time, and rows were loaded in the order of the source.
	is_deeply(old_ids(get('genres?page[size]=100')->{data}), [ 1 .. 25 ], 'by id without being asked');
	is_deeply(old_ids(get('genres?page[size]=100&sort=-id')->{data}), [ reverse 1 .. 25 ], 'by -id');
	is(get('tracks?sort=-composer&page[size]=1')->{data}[0]{attributes}{composer},
		undef, 'nulls first when descending');
	isnt(get('tracks?sort=composer&page[size]=1')->{data}[0]{attributes}{composer},
		undef, 'and last when ascending');
};

subtest 'fields' => sub {
	my $data = get("tracks/$ids->{Track}{1}?fields[tracks]=name,genre")->{data};
	is_deeply([ keys %{ $data->{attributes} } ], ['name'], 'one attribute');
	is_deeply([ keys %{ $data->{relationships} } ], ['genre'], 'one relationship');

	my $list = get('tracks?page[size]=2&fields[tracks]=&include=album&fields[albums]=title');
	ok(!%{ $list->{data}[0]{attributes} // {} }, 'none at all');
	is_deeply([ keys %{ $list->{included}[0]{attributes} } ], ['title'], 'of what is included');
	ok(!exists $list->{included}[0]{relationships}{artist}, 'as well');
};

# --- include ----------------------------------------------------------------

subtest 'include' => sub {
	my $list = get('tracks?include=album.artist,genre&page[size]=50&sort=name&filter='
		  . escape(q{genre.name=in=(Jazz,Blues)}));
	my %included = by_id($list);
	is(scalar keys %included, scalar @{ $list->{included} }, 'each resource once');
	my %expected;
	for my $data (@{ $list->{data} })
	{
		my $track = $row{Track}{ $old{ $data->{id} } };

		$expected{ $ids->{Album}{ $track->{AlbumId} } } = 1;
		$expected{ $ids->{Artist}{ artist_of($track)->{ArtistId} } } = 1;
		$expected{ $ids->{Genre}{ $track->{GenreId} } } = 1;
	}
	is_deeply([ sort keys %included ], [ sort keys %expected ], 'album.artist and genre');

	$list = get('invoices?include=invoiceLines.item.artist&sort=-total&page[size]=5');
	%included = by_id($list);
	%expected = ();
	for my $data (@{ $list->{data} })
	{
		my $invoice = $old{ $data->{id} };

		is_deeply(
			sorted(@{ old_ids($data->{relationships}{invoiceLines}{data}) }),
			sorted(map { $_->{InvoiceLineId} } ref_rows('InvoiceLine.InvoiceId', $invoice)),
			"lines of invoice $invoice");
		for my $line (ref_rows('InvoiceLine.InvoiceId', $invoice))
		{
			my $track = track_of($line);

			$expected{ $ids->{InvoiceLine}{ $line->{InvoiceLineId} } } = 'invoicelines';
			if (sells_album($line))
			{
				$expected{ $ids->{Album}{ $track->{AlbumId} } } = 'albums';
				$expected{ $ids->{Artist}{ artist_of($track)->{ArtistId} } } = 'artists';
			}
			else
			{
				$expected{ $ids->{Track}{ $track->{TrackId} } } = 'tracks';
			}
		}
	}
	is_deeply({ map { $_ => $included{$_}{type} } keys %included },
		\%expected, 'three deep, through the one-of');
	ok((grep { $_ eq 'artists' } values %expected), 'and the third hop was taken');

	$list = get('invoices?include=invoiceLines.item.album&sort=-total&page[size]=5');
	%included = by_id($list);
	for my $line (grep { $_->{type} eq 'invoicelines' } values %included)
	{
		my $item = $included{ $line->{relationships}{item}{data}{id} };
		next if $item->{type} eq 'albums';
		ok($included{ $item->{relationships}{album}{data}{id} }, 'the album of a track that was sold');
	}

	$list = get('customers?include=supportRep.reportsTo&page[size]=100');
	%included = by_id($list);
	is_deeply(
		sorted(map { $old{$_} } keys %included),
		sorted(uniq map {
			($_->{SupportRepId}, $row{Employee}{ $_->{SupportRepId} }{ReportsTo})
		} rows('Customer')),
		'supportRep.reportsTo');

	$list = get("albums/$ids->{Album}{1}?include=artist.albums.artist.albums");
	is((grep { $_->{id} eq $ids->{Album}{1} } @{ $list->{included} }), 0,
		'what is primary is not included again');
	is_deeply(get('playlists?filter=name==Movies&include=tracks')->{included}, [],
		'nothing to include');
	is_deeply(get('playlists?page[size]=1&include=')->{included}, [], 'included, but empty');
	ok(!exists get('playlists?page[size]=1')->{included}, 'not without being asked');

	# More than linkage shows, yet all of them
	$list = get("playlists/$ids->{Playlist}{1}?include=tracks&fields[tracks]=name");
	is(scalar @{ $list->{included} }, scalar ref_rows('PlaylistTrack.PlaylistId', 1),
		'thousands of resources');

	# Only what was asked for: the customers of the boss, not those of the team
	$list = get("employees/$ids->{Employee}{2}?include=reports,reportsTo.customers");
	is_deeply(sorted(@{ old_ids($list->{included}) }), [ 1, 3, 4, 5 ],
		'two paths through the same type');
	$list = get("employees/$ids->{Employee}{2}?include=reportsTo,reports.customers");
	is_deeply([ uniq sort map { $_->{type} } @{ $list->{included} } ],
		[qw(customers employees)], 'the other way round');
	is(scalar @{ $list->{included} }, 4 + rows('Customer'), 'all customers of the team');
};

# --- relationships ----------------------------------------------------------

subtest 'many to many' => sub {
	for my $playlist (rows('Playlist'))
	{
		my @tracks = map { $_->{TrackId} } ref_rows('PlaylistTrack.PlaylistId', $playlist->{PlaylistId});
		my $tracks =
		  get("playlists/$ids->{Playlist}{ $playlist->{PlaylistId} }")->{data}{relationships}{tracks};

		if (@tracks > 1000)
		{
			ok(!exists $tracks->{data}, "too many: $playlist->{Name}");
			is($tracks->{meta}{count}, scalar @tracks, 'but counted');
		}
		else
		{
			is_deeply(sorted(@{ old_ids($tracks->{data}) }), sorted(@tracks), $playlist->{Name});
		}
	}
	for my $track (1, 3, 3402, 3503)
	{
		is_deeply(
			sorted(@{ old_ids(get("tracks/$ids->{Track}{$track}")->{data}{relationships}{playlists}{data}) }),
			sorted(playlists_of($row{Track}{$track})),
			"playlists of track $track");
	}

	my $new = $shim->must(201, POST => '/api/v1/playlists',
		{   token => $manager,
			json  => {
				data => {
					type          => 'playlists',
					attributes    => { name => 'Two, one of them twice' },
					relationships => {
						tracks => { data => identifier($ids, Track => [ 5, 6, 5 ]) } } } } })->{data};
	is_deeply(sorted(@{ old_ids($new->{relationships}{tracks}{data}) }), [ 5, 6 ], 'stored once');
	my $target = "/api/v1/playlists/$new->{id}";
	my $patched = $shim->must(200, PATCH => $target,
		{   token => $manager,
			json  => {
				data => {
					type          => 'playlists',
					id            => $new->{id},
					relationships => {
						tracks => { data => identifier($ids, Track => [ 6, 7 ]) } } } } })->{data};
	is_deeply(sorted(@{ old_ids($patched->{relationships}{tracks}{data}) }), [ 6, 7 ], 'replaced');
	is($patched->{attributes}{name}, 'Two, one of them twice', 'nothing else');
	$shim->must(204, DELETE => $target, { token => $manager });
	is($shim->http(GET => $target, { token => $manager })->{status}, 404, 'deleted');
	is_deeply(
		sorted(@{ old_ids(get("tracks/$ids->{Track}{6}")->{data}{relationships}{playlists}{data}) }),
		sorted(playlists_of($row{Track}{6})),
		'and its links with it');
};

subtest 'employees' => sub {
	my $list = get('employees?include=reports,reportsTo,customers&page[size]=100');

	for my $data (@{ $list->{data} })
	{
		my $employee = $row{Employee}{ $old{ $data->{id} } };
		my $relationships = $data->{relationships};

		is_deeply(
			$relationships->{reportsTo}{data},
			identifier($ids, Employee => $employee->{ReportsTo}),
			"boss of $employee->{LastName}");
		is_deeply(
			sorted(@{ old_ids($relationships->{reports}{data}) }),
			sorted(map { $_->{EmployeeId} } ref_rows('Employee.ReportsTo', $employee->{EmployeeId})),
			"team of $employee->{LastName}");
	}
	ok(!(grep { $_->{type} ne 'customers' } @{ $list->{included} }),
		'all employees are primary, none is included');

	# Down the tree, level by level
	my @levels = ([1]);
	while (@{ $levels[-1] })
	{
		my $bosses = join ',', map { $ids->{Employee}{$_} } @{ $levels[-1] };

		push @levels, sorted(@{ old_ids(get("employees?filter=reportsTo.id=in=($bosses)")->{data}) });
	}
	is_deeply(\@levels, [ [1], [ 2, 6 ], [ 3, 4, 5, 7, 8 ], [] ], 'the tree');
};

subtest 'one-of' => sub {
	my @wrong;

	for my $page (walk('invoiceLines?page[size]=100&fields[invoicelines]=item'))
	{
		for my $data (@{ $page->{json}{data} })
		{
			my $line = $row{InvoiceLine}{ $old{ $data->{id} } };
			my $item = $data->{relationships}{item}{data};
			my $expected = sells_album($line)
			  ? identifier($ids, Album => track_of($line)->{AlbumId})
			  : identifier($ids, Track => $line->{TrackId});

			push @wrong, $line->{InvoiceLineId}
			  if $item->{type} ne $expected->{type} || $item->{id} ne $expected->{id};
		}
	}
	is_deeply(\@wrong, [], 'type and id of every item');

	my $line = "/api/v1/invoiceLines/$ids->{InvoiceLine}{1}";
	my $patch = sub {
		my ($data) = @_;

		return $shim->http(PATCH => $line,
			{   token => $manager,
				json  => {
					data => {
						type          => 'invoicelines',
						id            => $ids->{InvoiceLine}{1},
						relationships => { item => { data => $data } } } } });
	};
	for my $case (
		[ 400, 'no member', { type => 'artists', id => $ids->{Artist}{1} } ],
		[ 400, 'no type at all', { type => 'nothing', id => $ids->{Artist}{1} } ],
		[ 400, 'no member, and nothing there', { type => 'artists', id => $nobody } ],
		[ 404, 'the id of another member', { type => 'albums', id => $ids->{Track}{1} } ],
		[ 400, 'null on a required one', undef ],
		[ 400, 'an array', [ { type => 'albums', id => $ids->{Album}{1} } ] ])
	{
		my ($status, $name, $data) = @$case;
		is($patch->($data)->{status}, $status, $name);
	}
	is_deeply(
		get("invoiceLines/$ids->{InvoiceLine}{1}")->{data}{relationships}{item}{data},
		identifier($ids, Track => 2),
		'and nothing has changed');
	is($patch->(identifier($ids, Album => 7))->{json}{data}{relationships}{item}{data}{type},
		'albums', 'to the other member');
	is($patch->(identifier($ids, Track => 2))->{json}{data}{relationships}{item}{data}{type},
		'tracks', 'and back');
	is($shim->http(DELETE => "/api/v1/tracks/$ids->{Track}{2}", { token => $manager })->{status},
		409, 'what was sold stays');
};

# --- roles ------------------------------------------------------------------

subtest 'a listener' => sub {
	my $listener = $north->{listener};
	my $track = $ids->{Track}{1};

	is(total('tracks', undef, $listener), 3503, 'may look at tracks');
	for my $case (
		[ POST   => 'genres', { data => { type => 'genres', attributes => { name => 'Noise' } } } ],
		[ PATCH  => "tracks/$track", { data => { type => 'tracks', id => $track } } ],
		[ DELETE => "tracks/$track" ],
		[ GET    => 'invoices' ],
		[ GET    => "invoices/$ids->{Invoice}{1}" ],
		[ GET    => "invoices/$nobody" ])
	{
		my ($method, $target, $json) = @$case;
		is($shim->http($method => "/api/v1/$target",
				{ token => $listener, $json ? (json => $json) : () })->{status},
			403, "but not $method $target");
	}
};

# --- nobody sees the other --------------------------------------------------

# The same request for an id of the other tenant, and for an id of nobody: the
# answers are equal but for the id.  Returns the status.
sub same_as_nobody
{
	my ($name, $theirs, $request) = @_;
	my @answers = map {
		my ($method, $target, $options) = $request->($_);

		$options->{headers}{'X-Request-Id'} = 'the-same';
		my $answer = $shim->http($method, $target, { token => $south->{manager}, %$options });
		my $id = $_;
		{   status  => $answer->{status},
			body    => $answer->{body} =~ s/\Q$id\E/ID/gr,
			headers => {
				map { $_ => $answer->{headers}{$_} =~ s/\Q$id\E/ID/gr }
				grep { $_ ne 'date' && $_ ne 'content-length' } keys %{ $answer->{headers} } } };
	} ($theirs, $nobody);

	is_deeply($answers[0], $answers[1], $name);
	return $answers[0]{status};
}

subtest 'isolation' => sub {
	for my $kind (@kinds)
	{
		my ($name, $collection) = @$kind;
		my $type = lc $collection;
		my $theirs = $ids->{$name}{1};
		my $document = sub {
			my ($id, @more) = @_;
			return { json => { data => { type => $type, id => $id, @more } } };
		};
		my %cases = (
			"GET $collection" => sub { GET => "/api/v1/$collection/$_[0]", {} },
			"GET $collection, included" => sub { GET => "/api/v1/$collection/$_[0]?include=", {} },
			"PATCH $collection" => sub {
				PATCH => "/api/v1/$collection/$_[0]",
				  { %{ $document->($_[0]) }, headers => { 'If-Match' => '"0"' } };
			},
			"PATCH $collection, stale" => sub {
				PATCH => "/api/v1/$collection/$_[0]",
				  { %{ $document->($_[0]) }, headers => { 'If-Match' => '"77"' } };
			},
			"DELETE $collection" => sub {
				DELETE => "/api/v1/$collection/$_[0]", { headers => { 'If-Match' => '*' } };
			},
		);
		for (sort keys %cases)
		{
			is(same_as_nobody($_, $theirs, $cases{$_}), 404, "$_: 404");
		}

		# Without If-Match it may be 428, but for both.
		for my $method (qw(PATCH DELETE))
		{
			same_as_nobody("$method $collection without If-Match", $theirs, sub {
					my ($id) = @_;
					$method => "/api/v1/$collection/$id",
					  $method eq 'PATCH' ? $document->($id) : {};
				});
		}

		is(total($collection, "id==$theirs", $south->{manager}), 0, "filter of $collection");
		is(total($collection, "id==$theirs"), 1, 'which the owner does see');
	}
};

subtest 'no reference across' => sub {
	my %attributes = (
		albums    => { title => 'Stolen' },
		invoices  => { invoiceDate => '2026-01-01T00:00:00Z', total => 1 },
		playlists => { name => 'Stolen' },
		employees => { firstName => 'A', lastName => 'Thief' },
		invoiceLines => { unitPrice => 1, quantity => 1 },
	);
	my $own = $south->{ids};
	my $before = { map { $_->[1] => total($_->[1], undef, $south->{manager}) } @kinds };

	for my $case (
		[ albums    => artist    => 'Artist' ],
		[ invoices  => customer  => 'Customer' ],
		[ playlists => tracks    => 'Track', 'many' ],
		[ employees => reportsTo => 'Employee' ],
		[ employees => reports   => 'Employee', 'many' ],
		[ invoiceLines => item   => 'Track' ],
		[ invoiceLines => item   => 'Album' ])
	{
		my ($collection, $relationship, $kind, $many) = @$case;
		my $status = same_as_nobody("POST $collection, $relationship", $ids->{$kind}{1}, sub {
				my ($id) = @_;
				my $to = { type => lc $collection{$kind}, id => $id };

				POST => "/api/v1/$collection",
				  { json => {
						data => {
							type          => lc $collection,
							attributes    => $attributes{$collection},
							relationships => {
								$relationship => { data => $many ? [$to] : $to },
								$collection eq 'invoiceLines'
								? (invoice => { data => identifier($own, Invoice => 1) })
								: () } } } };
			});
		is($status, 404, "POST $collection, $relationship: 404");
	}

	for my $case (
		[ Album       => artist    => 'Artist' ],
		[ Track       => genre     => 'Genre' ],
		[ Track       => playlists => 'Playlist', 'many' ],
		[ Playlist    => tracks    => 'Track', 'many' ],
		[ Employee    => reports   => 'Employee', 'many' ],
		[ Employee    => reportsTo => 'Employee' ],
		[ InvoiceLine => item      => 'Album' ],
		[ Customer    => invoices  => 'Invoice', 'many' ])
	{
		my ($kind, $relationship, $to_kind, $many) = @$case;
		my $mine = $own->{$kind}{1};
		my $target = "/api/v1/$collection{$kind}/$mine";
		my $unchanged = get("$collection{$kind}/$mine", $south->{manager})->{data};
		my $status = same_as_nobody("PATCH $kind, $relationship", $ids->{$to_kind}{1}, sub {
				my ($id) = @_;
				my $to = { type => lc $collection{$to_kind}, id => $id };

				PATCH => $target,
				  { json => {
						data => {
							type          => lc $collection{$kind},
							id            => $mine,
							relationships => {
								$relationship => { data => $many ? [$to] : $to } } } } };
			});
		is($status, 404, "PATCH $kind, $relationship: 404");
		is_deeply(get("$collection{$kind}/$mine", $south->{manager})->{data},
			$unchanged, 'nothing has changed');
	}
	is_deeply({ map { $_->[1] => total($_->[1], undef, $south->{manager}) } @kinds },
		$before, 'nothing was made');
};

subtest 'no sight across' => sub {
	my %theirs = map { $_ => 1 } map { values %{ $ids->{$_} } } keys %$ids;
	my $strangers = 0;

	for my $target ('invoices?include=invoiceLines.item.album,customer.supportRep&page[size]=100',
		'employees?include=reports,customers.invoices', 'artists?include=albums.tracks&page[size]=50',
		'playlists?filter=tracks.name==Angel,name==Grunge&include=tracks')
	{
		my $document = get($target, $south->{manager});
		my $body = JSON::PP->new->canonical->encode($document);

		$strangers += grep { $theirs{$_} } $body =~ /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/g;
	}
	is($strangers, 0, 'no id of the other tenant anywhere');

	for my $filter ("album.id==$ids->{Album}{1}", "playlists.id==$ids->{Playlist}{1}",
		"genre.id=in=($ids->{Genre}{1},$ids->{Genre}{2})")
	{
		is(total('tracks', $filter, $south->{manager}), 0, $filter);
	}
	is(total('invoiceLines', "item.id==$ids->{Track}{2}", $south->{manager}), 0, 'through the one-of');

	# What is unique is so for a tenant: both have all the genres, and the other
	# one's new genre is free here.
	my $genre = { data => { type => 'genres', attributes => { name => 'Fado' } } };
	my $made = $shim->must(201, POST => '/api/v1/genres', { token => $manager, json => $genre });
	$shim->must(409, POST => '/api/v1/genres', { token => $manager, json => $genre });
	my $other = $shim->must(201, POST => '/api/v1/genres', { token => $south->{manager}, json => $genre });
	$shim->must(204, DELETE => "/api/v1/genres/$made->{data}{id}", { token => $manager });
	is(total('genres', 'name==Fado', $south->{manager}), 1, 'a value taken only over there');
	$shim->must(204, DELETE => "/api/v1/genres/$other->{data}{id}", { token => $south->{manager} });

	is($shim->http(GET => '/api/v1/tracks',
			{ token => $south->{manager}, headers => { 'X-Tenant-Id' => $north->{tenant} } })->{status},
		403, 'nor by asking for the other tenant');
	is($shim->http(GET => '/api/v1/tracks',
			{ token => $south->{manager}, headers => { 'X-Tenant-Id' => $south->{tenant} } })->{status},
		200, 'the own one may be named');
};

done_testing;
