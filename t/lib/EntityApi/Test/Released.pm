package EntityApi::Test::Released;

=head1 NAME

EntityApi::Test::Released - versions of the extension that are installed no more

=head1 FUNCTIONS

=head2 versions()

Those that have been released before the one under way, the oldest first.

=cut

use strict;
use warnings;

use File::Copy ();
use version;

sub versions
{
	return sort { version->parse("v$a") <=> version->parse("v$b") } map { /entityapi--([^-]+)\.sql$/ ? $1 : () } _scripts();
}

=head2 before($version)

Those of them that are older than one.

=cut

sub before
{
	my ($version) = @_;
	return grep { version->parse("v$_") < version->parse("v$version") } versions();
}

sub _scripts
{
	my $checkout = EntityApi::Test::checkout();

	return glob "$checkout/extension/update/released/*.sql";
}

=head2 install($cluster)

Put their install scripts beside that of the current version, where C<CREATE
EXTENSION ... VERSION> finds them, until the next build is installed there.
False, and nothing done, if that is no private place.

=cut

sub install
{
	my ($cluster) = @_;
	my $share = $cluster->psql(q{select setting from pg_config where name = 'SHAREDIR'});

	return 0 if EntityApi::Test::private_program('') eq EntityApi::Test::server_program('');
	for my $script (_scripts())
	{
		my ($name) = $script =~ m{([^/]+)$};

		# other tests may be reading the same file
		File::Copy::copy($script, "$share/extension/$name.$$")
		  && rename("$share/extension/$name.$$", "$share/extension/$name")
		  or die "$share/extension/$name: $!\n";
	}
	return 1;
}

1;
