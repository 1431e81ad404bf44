package EntityApi::Test::Node;

=head1 NAME

EntityApi::Test::Node - programs from npm, for TAP tests

=head1 SYNOPSIS

	my $why = EntityApi::Test::Node::install($folder);
	plan skip_all => $why if defined $why;

=head1 FUNCTIONS

=head2 install($folder, %options)

Make what is installed in a folder what its lock file says.  Returns undef, or
why that cannot be: there is no node, or npm gets nothing.  No package runs
anything at that; C<build> names those that are to be built then, for this node,
and C<seconds> says how long each step may take (180).

=cut

use strict;
use warnings;

use Fcntl qw(:flock);

use EntityApi::Test;

# The packages that this node cannot load
sub unloadable
{
	my ($folder, @names) = @_;

	return grep { EntityApi::Test::run([ 'node', '-e', 'require(process.argv[1])', "$folder/node_modules/$_" ])->{status} != 0 } @names;
}

sub install
{
	my ($folder, %options) = @_;
	my @build = @{ $options{build} // [] };

	return 'node (18 or later) and npm are not there'
	  if (`node --version 2>/dev/null` || '') !~ /^v(\d+)/ || $1 < 18 || !`npm --version 2>/dev/null`;

	# tests run side by side: one installs, the other waits
	open my $lock, '<', "$folder/package.json" or die "$folder/package.json: $!\n";
	flock $lock, LOCK_EX or die "flock: $!\n";
	my ($wanted, $installed) = map { (stat "$folder/$_")[9] // 0 } qw(package-lock.json node_modules/.package-lock.json);
	my @steps = ([ 'ci', '--ignore-scripts' ], @build ? [ 'rebuild', @build ] : ());

	if ($installed >= $wanted)
	{
		return if !unloadable($folder, @build);
		shift @steps;
	}
	for my $step (@steps)
	{
		my $npm = EntityApi::Test::run(
			[ 'timeout', $options{seconds} // 180, 'npm', @$step, qw(--no-audit --no-fund --no-update-notifier --prefix), $folder ]);
		next if $npm->{status} == 0;
		return "npm cannot install $folder: " . ($npm->{err} =~ /^(npm err.*)$/mi ? $1 : "status $npm->{status}");
	}
	my @broken = unloadable($folder, @build);
	return @broken ? "what npm has built does not load: @broken" : undef;
}

1;
