# entityapi-shim diff: what two sets of manifests declare differently, whatever
# files they lie in, and without a database.

use strict;
use warnings;

use File::Path qw(make_path);
use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $folder = EntityApi::Test::folder();
my $program = EntityApi::Test::private_program('entityapi-shim');

sub put
{
	my ($name, $text) = @_;

	make_path("$folder/$name" =~ s{/[^/]+$}{}r);
	open my $out, '>:raw', "$folder/$name" or die "$name: $!\n";
	print $out $text;
	close $out;
	return;
}

# The settings lead to no database.
sub diff
{
	my $run = EntityApi::Test::run([ $program, 'diff', @_ ], env => { ENTITYAPI_DATABASE => 'host=/nowhere' });
	return ($run->{status}, $run->{out}, $run->{err} =~ s/\Q$folder\E\///gr);
}

my $entity = <<'YAML';
apiVersion: entityapi/v1
kind: Entity
metadata: {name: Note}
spec:
  fields:
    title: {type: string, maxLength: 10}
    "a/b~c": {type: text}
    gone: {type: date}
  permissions: {Reader: [read]}
YAML
my $roles = "apiVersion: entityapi/v1\nkind: Roles\nmetadata: {name: roles}\nspec:\n  roles: {Reader: {}}\n";

put('old/all.yaml', "$entity---\n$roles");
put('same/a/roles.json', '{"kind": "Roles", "metadata": {"name": "roles"}, "spec": {"roles": {"Reader": {}}}, "apiVersion": "entityapi/v1"}');
put('same/z.yaml', "# a comment\n" . $entity =~ s/string, maxLength: 10/"string", maxLength: 10/r);
is_deeply([ diff("$folder/old", "$folder/same") ], [ 0, '', '' ], 'other files, order, spelling: the same');
is_deeply([ diff("$checkout/examples/billing", "$checkout/examples/billing") ], [ 0, '', '' ], 'what is the same folder, is');

put('turned/all.yaml', "$entity---\n$roles" =~ s/(    title:.*\n)((?:.*\n){2})/$2$1/r);
is_deeply([ diff("$folder/old", "$folder/turned") ], [ 1, qq{Entity/Note /spec/fields, order: ["title","a/b~c","gone"] -> ["a/b~c","gone","title"]\n}, '' ], 'but fields have an order');

put('new/note.yaml', $entity =~ s/maxLength: 10/maxLength: 20/r =~ s/type: text/type: string/r =~ s/\n    gone:.*//r
	  =~ s/\[read\]/[create, read], Writer: [create]/r . "---\nkind: Policy\nmetadata: {name: P}\nspec: {expression: 'true'}\n");
is_deeply([ diff("$folder/old", "$folder/new") ], [ 1, <<'TEXT', '' ], 'each difference has its line');
Entity/Note /spec/fields/title/maxLength: 10 -> 20
Entity/Note /spec/fields/a~1b~0c/type: "text" -> "string"
Entity/Note /spec/fields/gone: - {"type":"date"}
Entity/Note /spec/permissions/Reader: ["read"] -> ["create","read"]
Entity/Note /spec/permissions/Writer: + ["create"]
- Roles/roles
+ Policy/P
TEXT
my ($status, $back) = diff("$folder/new", "$folder/old");
is("$status " . scalar(split /\n/, $back), '1 7', 'as many the other way');
like($back, qr/^Entity\/Note \/spec\/fields\/gone: \+ \{"type":"date"\}$/m, 'turned round');
is((diff("$folder/old/all.yaml", "$folder/same"))[0], 0, 'a file is a set, too');

put('twice/a.yaml', "$roles---\n$roles");
put('nameless/a.yaml', "kind: Roles\n---\nkind: [A]\nmetadata: {name: x}\n---\n$roles");
put('broken/a.yaml', "a: [\n");
put('empty/README', "nothing\n");
for my $case (
	[ twice => qr/^a\.yaml#2: is declared twice\n\z/ ],
	[ nameless => qr/^a\.yaml#1: has no kind and metadata\.name\na\.yaml#2: has no kind and metadata\.name\n\z/ ],
	[ broken => qr/^broken\/a\.yaml:\d+: / ],
	[ empty => qr/^empty: no manifest found\n\z/ ],
	[ nowhere => qr/^nowhere: No such file/ ])
{
	my ($name, $word) = @$case;

	for my $order ([ "$folder/$name", "$folder/old" ], [ "$folder/old", "$folder/$name" ])
	{
		my ($status, $out, $err) = diff(@$order);
		is("$status$out", 2, "$name is no set of manifests");
		like($err, $word, 'which is told');
	}
}
is((diff(@$_))[0], 2, 'wrong use') for [], ["$folder/old"], [ ("$folder/old") x 3 ], [ '--wait', "$folder/old" ];

done_testing;
