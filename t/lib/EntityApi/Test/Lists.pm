package EntityApi::Test::Lists;

=head1 NAME

EntityApi::Test::Lists - rows and requests by which servers are compared

=head1 DESCRIPTION

A server with Citus beside one without it, both with the manifests of
t/data/lists and the same rows.

=head2 fill($cluster, $tenant, $rows)

So many items of a tenant, with groups and labels.

=head2 id($number)

That of an item, counted from 1.

=head2 @requests

Each is a hash of C<name>, C<target>, where there are any C<method> and C<body>,
C<aim>, how many times as much it may take on the tenant's own node as
without Citus, and of one that takes long C<part>: of how many it is to be one.

=head2 given($request, $number)

Target and body of such a request for the item of that number.

=head2 @statements, statement($statement, $tenant, $number)

The same for what readers ask by SQL, of a tenant; each has C<sql>.

=cut

use strict;
use warnings;

use JSON::PP ();

my $json = JSON::PP->new->canonical;

our @requests = (
	{ name => 'by id, one field', aim => 1.25, target => '/items/@ID@?fields[items]=name' },
	{ name => 'by id, all of it', aim => 1.25, target => '/items/@ID@' },
	{ name => 'list of 20: filter, sort, fields', aim => 1.1, target => '/items?filter=state==OPEN&sort=-rank&fields[items]=name,rank&page[totals]=false' },
	{ name => 'list of 20: include, totals', aim => 1.1, target => '/items?filter=state==OPEN&sort=-rank&include=group,labels', part => 4 },
	# one node alone writes the row without the executor, by hooks on which Citus stands
	{ name => 'PATCH', aim => 1.75, method => 'PATCH', target => '/items/@ID@', body => { data => { type => 'items', id => '@ID@', attributes => { note => '@NUMBER@', price => 5 } } } },
	{ name => 'POST', aim => 1.75, method => 'POST', target => '/items', body => { data => { type => 'items', attributes => { name => '@NUMBER@', rank => 5, state => 'NEW' } } } });

our @statements = map { { aim => 1.3, %$_, name => "reader: $_->{name}" } } (
	{ name => 'by id', sql => q{select name, rank, note from app.item where tenant_id = '@TENANT@' and id = '@ID@'} },
	{ name => 'list of 20: filter, sort', sql => q{select id, name, rank from app.item where tenant_id = '@TENANT@' and state = 'OPEN' order by rank desc limit 20} },
	{ name => 'count with a filter', sql => q{select count(*) from app.item where tenant_id = '@TENANT@' and state = 'OPEN'} },
	{ name => 'sums by group, joined', part => 4, sql => q{select g.title, count(*), sum(i.price) from app.item i join app."group" g on g.id = i.group_id and g.tenant_id = i.tenant_id where i.tenant_id = '@TENANT@' group by 1} });

sub id { return sprintf '01900000-0000-7001-8000-%012x', $_[0] }

my $numbers = 0;

sub given
{
	my ($request, $item) = @_;
	my $id = id($item);
	my $number = 'n' . $numbers++;

	return map { defined $_ ? s/\@ID\@/$id/gr =~ s/\@NUMBER\@/$number/gr : undef } $request->{target}, $request->{body} ? $json->encode($request->{body}) : undef;
}

sub statement
{
	my ($statement, $tenant, $item) = @_;
	my $id = id($item);

	return $statement->{sql} =~ s/\@ID\@/$id/gr =~ s/\@TENANT\@/$tenant/gr;
}

sub fill
{
	my ($cluster, $tenant, $rows) = @_;

	$cluster->psql(<<~"SQL");
		insert into app."group" (tenant_id, id, title, created_at, updated_at)
			select '$tenant', ('01900000-0000-7002-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'group ' || i, now(), now() from generate_series(1, 50) i;
		insert into app.label (tenant_id, id, word, created_at, updated_at)
			select '$tenant', ('01900000-0000-7003-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'label ' || i, now(), now() from generate_series(1, 20) i;
		insert into app.item (tenant_id, id, name, state, rank, price, note, group_id, created_at, updated_at)
			select '$tenant', ('01900000-0000-7001-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'item ' || i,
				case i % 3 when 0 then 'OPEN' when 1 then 'NEW' else 'DONE' end, i * 7919 % 10007, i, 'a note of some length ' || i,
				('01900000-0000-7002-8000-' || lpad(to_hex(i % 50 + 1), 12, '0'))::uuid, now(), now() from generate_series(1, $rows) i;
		insert into app.item_labels (tenant_id, item_id, label_id)
			select '$tenant', ('01900000-0000-7001-8000-' || lpad(to_hex(i), 12, '0'))::uuid, ('01900000-0000-7003-8000-' || lpad(to_hex(i % 20 + 1), 12, '0'))::uuid
			from generate_series(1, $rows) i;
		SQL
	return;
}

1;
