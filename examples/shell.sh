# Functions for the examples of docs/, for bash and other shells:
#
#   . .local/env && . examples/shell.sh

# login USERNAME [PASSWORD]: from now on requests are this user's.  Without a
# password it is that of the accounts of examples/billing.
login()
{
	TOKEN=$(curl -sS "$ENTITYAPI_URL/auth/login" -H 'Content-Type: application/json' \
		-d "{\"username\":\"$1\",\"password\":\"${2-$DEMO_PASSWORD}\"}" | field accessToken)
}

# call METHOD TARGET [OPTION OF CURL...]: one request, and its answer
call()
{
	_method=$1 _target=$2
	shift 2
	case $_target in
	*/operations) _type='application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' ;;
	/api/*) _type=application/vnd.api+json ;;
	*) _type=application/json ;;
	esac
	curl -gsS -X "$_method" "$ENTITYAPI_URL$_target" -H "Content-Type: $_type" \
		-H "Authorization: Bearer $TOKEN" "$@"
	echo
}

# field NAME: the first member of that name in a JSON text, if it is a string
field()
{
	grep -o "\"$1\": *\"[^\"]*\"" | head -n 1 | cut -d'"' -f4
}
