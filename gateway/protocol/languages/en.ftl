# Every text that Signpost shows, in English. One key per text, the same keys in each file of this
# folder. A code of an error is a key; its value is the title, `.detail` says what to do.

## Errors

target_invalid = The address is malformed
    .detail = The request target must be a path and query of RFC 3986, with every "%" followed by two hex digits, and there must be exactly one valid Host.
params_malformed = The parameters are malformed
    .detail = A query or form has a broken percent-escape, a character that must be escaped, or bytes that are not UTF-8.
params_too_many = Too many parameters
    .detail = At most { $limit } parameters are accepted.
param_missing = A parameter is missing
    .detail = The parameter "{ $name }" is needed.
param_invalid = A parameter is invalid
    .detail = The parameter "{ $name }" must be: { $allowed }.
param_duplicated = A parameter appears twice
    .detail = The parameter "{ $name }" may appear only once.
header_duplicated = A header appears twice
    .detail = The header "{ $name }" may appear only once.
body_not_allowed = A body is not allowed here
    .detail = A GET request has no body. Send the parameters in the query, or use POST.
app_missing = The application is missing
    .detail = Name your application in the header "{ $name }".
version_unknown = There is no such version
    .detail = The versions are: { $versions }.
time_invalid = The time is invalid
    .detail = "time" must be the UTC time in milliseconds since 1970, in decimal digits.
login_mismatch = This login belongs to another browser
    .detail = Go on in the browser in which you began or confirmed the login, or begin a new one.
authorization_missing = You are not logged in
    .detail = This request needs the authorization that a login gives.
authorization_invalid = Your login is no longer valid
    .detail = Please log in again.
time_missing = The time is missing
    .detail = A request with parameters needs "time", in milliseconds, and "sign".
time_out_of_window = The time is too far off
    .detail = "time" may differ from the server's clock by at most { $window } seconds. Check the clock of your device.
sign_missing = The sign is missing
    .detail = This request must be signed: it needs "time" and "sign".
sign_mismatch = The sign does not match
    .detail = The sign is not the one that these parameters and the application's key make.
app_disabled = The application is disabled
    .detail = Ask whoever runs this service to enable it.
login_denied = The login was denied
    .detail = You did not allow the login at the provider. You can begin again.
return_to_not_allowed = The return address is not allowed
    .detail = "return_to" must be an http or https address of an origin registered for the application.
gateway_required = Only the gateway may call this
    .detail = Send the request to the gateway's address.
app_not_found = There is no such application
    .detail = Check the application's ident.
not_found = There is nothing here
    .detail = Check the path.
login_unknown = There is no such login
    .detail = It never began, is long over, or belongs to another application.
method_not_allowed = The method is not allowed
    .detail = Use one of the methods that the Allow header names.
request_timeout = The request took too long
    .detail = The whole request must arrive within { $seconds } seconds.
request_replayed = This request was already made
    .detail = Sign each request anew: a sign is accepted once.
login_pending = The login is not finished yet
    .detail = Finish it in the browser first.
login_used = This login was already used
    .detail = Its result stands. Begin a new login if you need one.
version_retired = This version is retired
    .detail = Move to one of: { $versions }.
login_expired = The login has expired
    .detail = It took too long. Begin a new one.
body_too_large = The body is too large
    .detail = At most { $limit } bytes are accepted.
uri_too_long = The query is too long
    .detail = At most { $limit } bytes are accepted. Send long values in a form by POST.
content_type_unsupported = The content type is not supported
    .detail = Send a body as application/x-www-form-urlencoded in UTF-8, without a content encoding.
rate_limited = Too many requests
    .detail = Wait as long as the Retry-After header says, then try again.
headers_too_large = The headers are too large
    .detail = The head of a request may have at most { $limit } bytes and { $count } headers.
internal = Something went wrong on our side
    .detail = Try again later. If it stays, report the request id.
backend_unreachable = The service cannot be reached
    .detail = Try again in a moment.
provider_failed = The login provider failed
    .detail = The provider gave no usable answer. Try again in a moment.
no_healthy_backend = The service is down
    .detail = Try again in a moment.
store_unavailable = The service is temporarily unavailable
    .detail = Its store cannot be reached. Try again in a moment.
backend_timeout = The service did not answer in time
    .detail = Try again in a moment.
provider_timeout = The login provider did not answer in time
    .detail = Try again in a moment.

## Hints

hint_seconds = Seconds? "time" is in milliseconds.
hint_microseconds = Microseconds? "time" is in milliseconds.
hint_unsorted = The pairs were not sorted by key before signing.
hint_empty_dropped = Pairs with an empty value were left out; they must be signed too.
hint_empty_kept = Pairs with an empty value were signed; they must be left out.
hint_decoded = Decoded values were signed; sign keys and values exactly as they are sent.
hint_encoded = Percent-encoded values were signed; sign the decoded ones.
hint_key_labelled = "&key=" was put before the key; append the key directly.
hint_key_not_labelled = "&key=" is missing before the key.
hint_key_in_front = The key was put in front; append it at the end.
hint_layout = Keys and values were put together in another way than this application's sign profile.
hint_trailing_newline = A line break was signed along at the end.
hint_escape_case = Percent-escapes were signed in another letter case than they were sent.
hint_cover = Method and path are either missing from the signed string or do not belong there.
hint_algorithm = Another hash algorithm was used than this application's sign profile says.
hint_hmac_hash = HMAC was used with another hash than this application's sign profile says.
hint_time_not_signed = "time" was not signed; it must be signed like every other parameter.
hint_space_as_escape = A space was sent as "+" but signed as "%20"; sign exactly what is sent.
hint_space_as_plus = A space was sent as "%20" but signed as "+"; sign exactly what is sent.
hint_query_left_out = The parameters of the query were not signed; sign those of query and form together.
hint_preset = The request was signed by the rules of the preset "{ $preset }", which is not this application's.
hint_previous_key = The request was signed with the previous key, which is no longer valid.
hint_key_or_value = No common slip explains this sign. Probably the key is another one, or a signed value differs from the one that was sent.

## Pages and login

page_confirm_title = Log in to { $application }
page_confirm_compare = Compare this code with the one that { $application } shows you:
page_confirm_code = Code
page_confirm_warning = Go on only if you began this login yourself and both codes are the same. If somebody sent you this address, close the window.
page_confirm_button = The codes are the same: log in with { $provider }
page_done_title = You are logged in
page_done_close = You may close this window and go back to { $application }.
page_problem_code = Code
page_problem_request = Request
