package EntityApi::Test::Node;

=head1 NAME

EntityApi::Test::Node - programs from npm, for TAP tests

=head1 SYNOPSIS

	my $why = EntityApi::Test::Node::install($folder);
	plan skip_all => $why if defined $why;

=head1 FUNCTIONS

=head2 install($folder)

Make what is installed in a folder what its lock file says.  Returns undef, or
why that cannot be: there is no node, or npm gets nothing.

=cut

use strict;
use warnings;

use Fcntl qw(:flock);

use EntityApi::Test;

sub install
{
	my ($folder) = @_;

	return 'node (18 or later) and npm are not there'
	  if (`node --version 2>/dev/null` || '') !~ /^v(\d+)/ || $1 < 18 || !`npm --version 2>/dev/null`;

	# tests run side by side: one installs, the other waits
	open my $lock, '<', "$folder/package.json" or die "$folder/package.json: $!\n";
	flock $lock, LOCK_EX or die "flock: $!\n";
	my ($wanted, $installed) = map { (stat "$folder/$_")[9] // 0 } qw(package-lock.json node_modules/.package-lock.json);
	return if $installed >= $wanted;

	my $npm = EntityApi::Test::run(
		[ qw(timeout 180 npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --prefix), $folder ]);
	return if $npm->{status} == 0;
	return "npm cannot install $folder: " . ($npm->{err} =~ /^(npm err.*)$/mi ? $1 : "status $npm->{status}");
}

1;
