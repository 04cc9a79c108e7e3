# Every text that Signpost shows, in English. One key per text, the same keys in each file of this
# folder. An error's code is its key; the value is the title, `.detail` says what to do. On pages, `.page-title` and `.page`
# replace them, since a user in a browser did not write the request; `.developer` replaces `.detail` as details for
# the application's maker. None of the three takes arguments. `.about` replaces `.detail` at `/problems/CODE`, which knows no request.

## Errors

target_invalid = The address is malformed
    .detail = { malformed }
    .about = The request target must be a path and query as in RFC 3986, with every "%" followed by two hex digits, and there must be exactly one valid Host header.
    .page-title = { page_link_title }
    .page = { page_link_detail }
target_ambiguous = The path is ambiguous
    .detail = A backend could take this path for another one: byte { $position } of it is { $found }. Send it without empty segments, ".", "..", ";", "\", an escaped "/" or control character, without "." or a space at the end of a segment, and in UTF-8.
    .about = A backend could take the path for another one. A path has no empty segments, no ".", "..", ";", "\", no escaped "/" or control character, no "." or space at the end of a segment, and is UTF-8.
    .page-title = { page_link_title }
    .page = { page_link_detail }
params_malformed = The parameters are malformed
    .detail = { malformed }
    .about = A query or form has a broken percent-escape, a character that must be escaped, or bytes that are not UTF-8.
    .page-title = { page_link_title }
    .page = { page_link_detail }
malformed = { $fault ->
        [character] { malformed_place }: { $found } must be percent-escaped there.
        [escape] { malformed_place }: a "%" without two hex digits is no escape.
        [encoding] { malformed_place }: not UTF-8.
        [gbk] { malformed_place }: not UTF-8. It looks like GBK or GB18030: encode text as UTF-8.
        [slash] The target must begin with "/": scheme and host do not belong there, but into "Host".
        [hosts] There must be exactly one Host header.
       *[other] The target, its scheme or the Host header is malformed.
    }
malformed_place = { $place ->
        [path] Byte { $position } of the path
        [host] Byte { $position } of Host
        [query] Byte { $position } of the query
        [query_parameter] Byte { $position } of the query, in the parameter "{ $name }"
        [form] Byte { $position } of the form
       *[form_parameter] Byte { $position } of the form, in the parameter "{ $name }"
    }
params_too_many = Too many parameters
    .detail = At most { $limit } parameters are accepted.
    .about = The request has more parameters than the limit, 256 by default.
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_missing = A parameter is missing
    .detail = The parameter "{ $name }" is required.
    .about = The parameter that "detail" names is required.
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_invalid = A parameter is invalid
    .detail = { $rule ->
        [once] The parameter "{ $name }" may appear only once.
        [only_one] Only one of these parameters may be sent: { $allowed }.
        [text] The parameter "{ $name }" must be at most { $allowed } bytes, without null characters.
       *[values] The parameter "{ $name }" accepts only { $allowed }.
    }
    .about = The parameter that "detail" names has a value that is not allowed, or appears twice. "detail" says what is allowed.
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_duplicated = A parameter appears twice
    .detail = The parameter "{ $name }" may appear only once.
    .about = The parameter that "detail" names may appear only once: "time", "sign", "app" on paths for browsers, or a parameter of a login's callback.
    .page-title = { page_link_title }
    .page = { page_link_detail }
header_duplicated = A header appears twice
    .detail = The header { $name } may appear only once.
    .about = The header that "detail" names may appear only once.
    .page-title = This request was changed on its way
    .page = A browser extension or a proxy probably changed the request. Turn it off, go back to the application and try again.
body_not_allowed = A body is not allowed here
    .detail = A GET request has no body. Send the parameters in the query, or use POST.
    .page-title = { page_link_title }
    .page = { page_link_detail }
app_missing = The application is not named
    .detail = Send your application's ident in the header { $name }.
    .page-title = { page_link_title }
    .page = { page_link_detail }
    .developer = Add the signed query parameter "app" to the link.
version_contradictory = Two versions are named
    .detail = The path or the host is version { $placed }'s, but the request asks for another one. Name one version.
    .about = The version header, the host and the beginning of the path name different versions. Name one version.
version_unknown = No such version
    .detail = Available versions: { $versions }.
    .about = The version in the header does not exist. "detail" names those that do.
    .page-title = { page_link_title }
    .page = { page_link_detail }
time_invalid = The time is invalid
    .detail = "time" must be the UTC time in milliseconds since 1970, in decimal digits.
    .page-title = { page_link_title }
    .page = { page_link_detail }
login_mismatch = This page is no longer current
    .detail = The login was opened again, or in another browser. Go back to the application and start again, in one window only.
authorization_missing = You are not logged in
    .detail = This request needs the "authorization" that a login returns, in the header { $name }.
    .page = Go back to the application and log in.
authorization_invalid = Your login is no longer valid
    .detail = The credential in the header { $name } is unknown, expired, ended, or another application's. Log in again.
    .page = Please log in again.
authorization_malformed = The credential is malformed
    .detail = The header { $name } has the "authorization" that a login returned: 43 characters of base64url, optionally after "Bearer ". Common causes: a cut value, quotes, "Basic", "Bearer" twice, or the word "undefined" or "null".
    .page = Go back to the application and log in again.
time_missing = The time is missing
    .detail = A request with parameters needs "time", in milliseconds, and "sign".
    .page-title = { page_link_title }
    .page = { page_link_detail }
time_out_of_window = The time is too far off
    .detail = "time" may differ from the server's clock by at most { $window } seconds. Check the clock of your device.
    .about = "time" differs too much from the server's clock, which "server_time" gives in milliseconds. Correct your time by it, and sign the request again.
    .page-title = This link has expired
    .page = It works only for a short time. Go back to the application and start again.
    .developer = Create the signed link just before the browser opens it. If that does not help, check the clock.
sign_missing = The signature is missing
    .detail = This request must be signed: it needs "time" and "sign".
    .page-title = { page_link_title }
    .page = { page_link_detail }
sign_mismatch = The signature does not match
    .detail = The value of "sign" does not match these parameters and this application's key.
    .page-title = { page_link_title }
    .page = { page_link_detail }
prefetch_refused = A login page is not loaded in advance
    .detail = The request says that it is a prefetch, but an address of a login is used only once. The same request without that header is served.
    .page = This page is loaded only when you open it. Go back, and open the link again.
app_disabled = The application is disabled
    .detail = Ask the operator of this service to enable it.
    .page-title = This application cannot be used at present
    .page = Logins for it are switched off here. Ask the maker of the application.
login_denied = The login was denied
    .detail = Nobody was logged in: access was denied at the provider, or the login was cancelled. To log in after all, go back to the application and start again.
network_mismatch = This login was begun in another network
    .detail = A login is confirmed here only in the network where it was begun. Go back to the application, and start again with its device and this browser in one network. If you did not start this login yourself, close this page.
return_to_not_allowed = The return address is not allowed
    .detail = "return_to" must be an http or https address of an origin registered for the application, without a fragment ("#").
    .page-title = { page_link_title }
    .page = { page_link_detail }
gateway_required = Only the gateway may send requests here
    .detail = Send the request to the gateway's address.
    .page-title = { page_link_title }
    .page = { page_link_detail }
app_not_found = No such application
    .detail = Check the application's ident.
    .page-title = { page_link_title }
    .page = { page_link_detail }
    .developer = Check the signed query parameter "app".
not_found = No such endpoint
    .detail = Check the path of the request.
    .page-title = There is no page here
    .page = Go back to the application and try again.
login_unknown = No such login
    .detail = It never started, ended long ago, or belongs to another application.
    .page-title = This login no longer exists
    .page = The link is incomplete, or the login ended long ago. Go back to the application and start again.
https_required = This call needs https
    .detail = It carried a signature, a credential or a form without encryption, so others in the network may have read it. Send it to the https address. If it had a credential, log the user out, then in again.
    .page-title = { page_link_title }
    .page = { page_link_detail }
upgrade_not_supported = Upgrades are not supported
    .detail = The Upgrade header asks for another protocol, for example WebSocket. This gateway serves HTTP only. Nothing was forwarded.
    .page-title = { page_link_title }
    .page = { page_link_detail }
method_not_allowed = The method is not allowed
    .detail =
        { $scope ->
            [gateway] This gateway accepts only { $methods }.
           *[path] This path accepts only { $methods }.
        }
    .about = The path does not accept this method. "detail" and the Allow header name those that it accepts.
    .page-title = { page_link_title }
    .page = { page_link_detail }
request_timeout = The request took too long
    .detail = Head and body must each arrive within { $seconds } seconds.
    .about = Head or body did not arrive in time. Nothing was forwarded.
    .page = The request arrived too slowly. Check your connection, then try again.
request_replayed = This request was already received
    .detail = Sign each request again: a signature is accepted only once.
    .page-title = This link was already used
    .page = It works only once. Go back to the application and start again.
    .developer = A signature is accepted only once.
login_pending = The login is not finished yet
    .detail = Finish it in the browser first.
login_used = This login was already used
    .detail = This login already has an outcome, which remains. Start a new login if you need one.
    .page-title = This login is already over
    .page = It was completed or cancelled before, perhaps in another window. If you are not logged in, go back to the application and start again.
idempotency_conflict = This idempotency key was already used
    .detail = Other content was sent with this key. Use a new key for each new event or request.
version_retired = This version has been retired
    .detail =
        { $scope ->
            [endpoint] Only this path has ended, not the whole version.{ " " }
           *[version] { "" }
        }{ $versions ->
            [none] Ask the operator of this service which version to use.
           *[other] Move to one of these versions: { $versions }.
        }
    .about = The version has ended. Move to one of the versions that "detail" names.
    .page-title = This application is out of date
    .page = The application uses a version of this service that no longer exists. Look for an update of the application.
login_expired = The login has expired
    .detail = It took too long. Go back to the application and start again.
body_too_large = The body is too large
    .detail = At most { $limit } bytes are accepted.
    .about = The body exceeds the limit that "detail" names.
    .page-title = { page_link_title }
    .page = { page_link_detail }
uri_too_long = The query is too long
    .detail = At most { $limit } bytes are accepted. Send long values in a form by POST.
    .about = The query exceeds the limit that "detail" names. Send long values in a form by POST.
    .page-title = { page_link_title }
    .page = { page_link_detail }
content_type_unsupported = The content type is not supported
    .detail =
        { $kind ->
            [api] Send the body as { $allowed }.
           *[form] Send the body as application/x-www-form-urlencoded in UTF-8, without a content encoding.
        }
    .page-title = { page_link_title }
    .page = { page_link_detail }
rate_limited = Too many requests
    .detail =
        { $limit ->
            [app] This application has reached its limit of requests. Wait for the time given in the Retry-After header, then try again.
            [address] Your network address has reached its limit of requests. Wait for the time given in the Retry-After header, then try again.
            [path] This path has reached its limit of requests. Wait for the time given in the Retry-After header, then try again.
           *[other] Wait for the time given in the Retry-After header, then try again.
        }
    .page = Wait a moment, then try again.
headers_too_large = The headers are too large
    .detail = The request line and headers may have at most { $limit } bytes in total, with at most { $count } headers.
    .about = The request line and headers exceed a limit that "detail" names.
    .page-title = Your browser sent too much data
    .page = Delete the cookies of this site, then try again.
internal = Something went wrong on our side
    .detail = Try again later. If it persists, report the request ID.
backend_unreachable = The service cannot be reached
    .detail = Try again in a moment.
bridge_failed = A change between two versions does not apply
    .detail = The change {$change} does not apply to this call. Tell the operator the request_id.
    .about = The operator has described what differs between two versions, and one of these changes does not apply to the call. Tell the operator the request_id.
provider_failed = The login provider failed
    .detail = The provider sent no usable response. Start a new login in a moment.
    .page = Nobody was logged in. Go back to the application and start again in a moment.
spool_full = There is no room for the body
    .detail = Try again in a moment.
    .about = Large bodies wait in a folder until they are verified, and it is full. Nothing was forwarded.
no_healthy_backend = The service is down
    .detail = Try again in a moment.
version_brownout = This version is switched off for a while
    .detail =
        { $scope ->
            [endpoint] Only this path is concerned, not the whole version.{ " " }
           *[version] { "" }
        }{ $versions ->
            [none] It is to be retired. Until then, try again after the time given in the Retry-After header.
           *[other] It is to be retired: move to one of these versions: { $versions }. Until then, try again after the time given in the Retry-After header.
        }
    .about = The version will be retired and is switched off for a while, so that its clients notice. Move to one of the versions that "detail" names. Until then, try again after the time given in the Retry-After header.
    .page-title = Not available at the moment
    .page = The application uses a version of this service that will be retired soon, and that is switched off for a while. Look for an update of the application, or try again later.
store_unavailable = The service is temporarily unavailable
    .detail = Its database cannot be reached. Try again in a moment.
    .page = Try again in a moment.
backend_timeout = The service did not respond in time
    .detail = Try again in a moment.
gateway_stopping = The service is restarting
    .detail = The request may have been executed. Check before you send it again.
    .page = Go back to the application and check whether you are logged in. If you are not, start again.
provider_timeout = The login provider did not respond in time
    .detail = Nobody was logged in. Go back to the application and start again in a moment.

## Management API

request_malformed = The request cannot be read
    .detail = { $problem }
nothing_to_change = There is nothing to change
    .detail = Give at least one setting.
token_missing = A token is required
    .detail = Send a token in the header Authorization: Bearer. The command "signpost token create" makes one.
token_invalid = The token is not valid
    .detail = It is unknown, has expired or was revoked. Ask an administrator for a new one.
account_not_found = No such account
    .detail = Check provider and username. An account exists once its user has logged in.
token_not_found = No such token
    .detail = Check the token's number.
token_taken = A token has this name
    .detail = Choose another name, or revoke that token first.
role_insufficient = The token's role does not allow this
    .detail = The token has the role { $role }; this call needs { $needed }.
cross_site = Pages of other sites may not call
    .detail = Call from a program, or from a page of this address.
app_taken = An application has this ident
    .detail = Nothing was changed. Choose another ident.
overlap_running = The previous key is still valid
    .detail = It is valid for { $minutes } more minutes. Wait, or end its validity by end-overlap.
not_drained = It is not drained
    .detail = No operator has drained this address of the backend, or its time is over.
revision_stale = It was changed meanwhile
    .detail = Nothing was changed. It has revision { $revision } now: read it again, then decide.
revision_missing = The change names no revision
    .detail = Send the revision that you have read, in the header If-Match or as "revision" in the body.
import_invalid = The file has problems
    .detail = Nothing was imported. "problems" lists them by line.
config_invalid = The configuration file has problems
    .detail = Nothing was changed. "problems" lists them.
report_too_large = The report is too large
    .detail = It has too many applications for one response. The command "signpost versions report" writes it on the gateway's machine.
idempotency_unfinished = The outcome of the first request is not known
    .detail = A request with this idempotency key is running, or was interrupted. Read what it would have changed, then send a new key.
address_not_found = No such address
    .detail = No backend with this name has this address.
last_address = It is the backend's last address
    .detail = Nothing was changed: without it, the backend would be unavailable. Send "force" if it should be.

## Hints

hint_seconds = Seconds? "time" must be in milliseconds.
hint_microseconds = Microseconds? "time" must be in milliseconds.
hint_nanoseconds = Nanoseconds? "time" must be in milliseconds, for example 1732104000000.
hint_time_fraction = "time" has a decimal fraction or an exponent. Send whole milliseconds, for example 1732104000000.
hint_time_quoted = "time" is in quotes or white space. Send the digits alone, for example 1732104000000.
hint_time_text = "time" is a date. Send the milliseconds since 1970-01-01 00:00 UTC in digits, for example 1732104000000.
hint_local_time = "time" differs from the gateway's clock by { $offset }. Was local time taken for UTC, or UTC for local time? Send the milliseconds since 1970-01-01 00:00 UTC.
hint_not_searched = The cause was not searched: too many wrong signatures in this second. Try again in a second.
hint_too_large = The cause was not searched: path and parameters exceed 8 KiB. Send a smaller request with the same program to learn the cause.
hint_unsorted = The parameters were not sorted by name before signing.
hint_empty_dropped = Parameters with an empty value were left out; this application's rules sign them, too.
hint_empty_kept = Parameters with an empty value were signed; this application's rules leave them out.
hint_decoded = Decoded values were signed; this application signs names and values exactly as they are sent.
hint_encoded = The values were signed in the form in which they are sent, or percent-encoded; this application signs the decoded ones. In a request, "+" is a space: send a plus sign as "%2B".
hint_key_labelled = "&key=" was put before the key: joined as { $found } instead of { $rule }.
hint_key_not_labelled = "&key=" is missing before the key: joined as { $found } instead of { $rule }.
hint_key_in_front = The key was put in front: joined as { $found } instead of { $rule }.
hint_layout = Names, values and key were joined as { $found }; this application joins them as { $rule }.
hint_trailing_newline = The signed text or the key ended with a line break; remove it, for example from a key that was read from a file.
hint_escape_case = Percent-escapes were signed in another letter case than they were sent; sign exactly what is sent.
hint_cover = { $found ->
    [request] The signed text lacks method and path; this application's rules put them in front of the parameters (cover = request): the method, a line feed, the path, a line feed.
    [address] The signed text contains the address or the path; this application's rules sign the parameters only: without method, scheme, host, path and "?" (cover = parameters).
   *[parameters] The signed text contains method and path; this application's rules sign the parameters only (cover = parameters).
}
hint_algorithm = { $found ->
    [none] This application uses { $rule }, with { $digits } hex digits; the request's "sign" has the length of another algorithm.
   *[other] The request was signed with { $found }; this application uses { $rule }.
}
hint_hmac_hash = The request was signed with { $found }; this application uses { $rule }.
hint_time_not_signed = "time" was not signed; it must be signed like every other parameter.
hint_space_as_escape = A space was sent as "+" but signed as "%20"; sign exactly what is sent.
hint_space_as_plus = A space was sent as "%20" but signed as "+"; sign exactly what is sent.
hint_query_left_out = The parameters of the query were not signed; sign those of query and form together.
hint_preset = The request was signed by the rules of the preset "{ $preset }", which this application does not use.{ $preset ->
    [decoded] {" "}That preset signs decoded values.
    [alipay] {" "}That preset signs decoded values, without empty ones and "sign_type".
    [wechat] {" "}That preset signs decoded values, without empty ones, and puts "&key=" before the key.
    [top] {" "}That preset signs decoded values, without empty ones, joined as KEYa1b2KEY.
   *[other] {""}
}
hint_previous_key = The request was signed with the previous key, which is no longer valid.
hint_encoded_differently = In the parameter "{ $key }", "{ $signed }" was signed but "{ $sent }" was sent{ $form ->
    [raw] : it was signed without encoding, or with that of a function like { $function }.
   *[encoded] : two functions encoded it (the signed form is, for example, that of { $function }).
    } Encode once, and sign exactly what is sent.
hint_encoded_twice = The request and the signed text differ by one percent-encoding, as if a value was encoded twice in one of them. Encode once, and sign exactly what is sent.
hint_order = { $found ->
    [value-too] Parameters of one name were sorted by their value, too.
    [pair] The pairs were sorted as a whole, with "=" and value.
    [value] The parameters were sorted by value.
    [ignoring-case] The parameters were sorted without regard to letter case.
    [descending] The parameters were sorted in descending order.
   *[utf-16] The parameters were sorted by UTF-16.
    } Sort by the decoded name, byte by byte and ascending; parameters of one name stay in the order in which they are sent.
hint_key_missing = The signed text does not contain the key; put it where this application's rules say.
hint_key_in_text = The signed text contains the key: joined as { $found } instead of { $rule }. With HMAC, this application uses the key only as that of the hash function.
hint_key_form = { $found ->
    [hex] The key was decoded from hex.
    [base64] The key was decoded from base64.
    [case] The key was written in another letter case.
    [quotes] The key was put in quotation marks.
    [bom] A byte order mark stands in front of the key.
    [cut] A part of the key was cut off.
    [unread] A placeholder or a missing value, such as "undefined", was used as the key.
    [swapped] Key and text of the HMAC were swapped.
   *[space] A space stands in front of the key or behind it.
    } Use the bytes of its text exactly as it was issued.
hint_stray_separator = The signed text has a superfluous "?" or "&" in front of the parameters, or a "&" behind them.
hint_cover_form = Method and path were not signed as this application requires: the method in upper case, a line feed, the path as it is sent, without scheme, host and query, and a line feed, in front of the parameters.
hint_sign_form = { $found ->
    [base64] "sign" has the form of base64; this application uses { $rule } in hex, { $digits } digits.
    [cut] "sign" has 16 hex digits, as a cut MD5; this application uses { $rule } with { $digits } hex digits.
    [around] "sign" has other characters around or between its hex digits, for example those of md5sum's output, or dashes; this application uses { $rule } with { $digits } hex digits and nothing else.
    [short] "sign" has too few hex digits: zeros were lost, as when the hash is written as a number, or a byte with one digit. Write two digits for each byte; this application uses { $rule } with { $digits } hex digits.
   *[other] "sign" is not the hex of a hash; this application uses { $rule }, with { $digits } hex digits.
}
hint_param_signed = The parameter "{ $key }" was signed; this application's rules leave it out.
hint_param_not_signed = The parameter "{ $key }" was not signed; this application's rules sign it like every other one.
hint_json = The parameters were signed as JSON; sign the pairs that are sent, joined as this application's rules say.
hint_key_or_value = No common mistake explains this signature. Compare the text that your program signs with the bytes that it sends, and with "canonical" in this response or the text of "signpost sign --canonical"; then check which application's key it uses.
hint_version_in_path = The version is not part of the path. Send the path "{ $path }" with the header "{ $name }: { $version }".
hint_missing_value = A missing value was signed as "{ $found }" but sent as "{ $rule }". Leave such a parameter out, or sign exactly what is sent.
hint_value_changed = { $found ->
    [trimmed] White space at an end of a name or value was sent, but not signed.
    [html] HTML entities, such as "&amp;" for "&", are in the signed text or in the request, but not in both.
    [unicode] The signed and the sent text have the same letters in different Unicode forms, such as NFC and NFD.
    [number] A number was signed in another form than it was sent, such as "1.0" for "1".
    [boolean] A truth value was signed in another form than it was sent, such as "True" or "1" for "true".
    [brackets] Names were signed without the brackets with which they were sent, such as "tag" for "tag[0]".
    [lines] Line breaks were signed in another form than they were sent: a line feed alone, or a carriage return and a line feed.
    [json] JSON in a value was written twice, in two forms: spaces or "\/" differ.
    [once] Of several parameters with one name only one was signed, since a map or dictionary keeps only one.
    [joined] Several parameters with one name were signed as one, joined by commas.
    [text] The whole text was changed to lower or upper case before it was hashed; only the hex digits of "sign" may have either letter case.
    [time] Another "time" was signed than was sent: some milliseconds before or after it, or seconds. Read the clock once for each request.
    [nothing] No parameter was signed. The text was perhaps built before the parameters were set, or from a body that had already been read.
    [spaces] Spaces were removed from names and values before signing.
   *[letters] Names and values were signed in lower or upper case, and sent in another letter case.
    } Build each value once, and sign exactly what is sent.
hint_form_left_out = The parameters of the form were not signed; sign those of query and form together.
hint_key_sent = The key itself was sent. Your key is in an address now, or in a form, and perhaps in logs: rotate it. The key only signs, and is never sent.
hint_body_unsigned = Signed parameters do not cover this body. Sign it in headers: the time, the signature and, if you like, a nonce.
hint_headers_missing = This request is signed in headers: the time in "…-X-Time", the signature in "…-X-Sign".
hint_in_parameters = "{ $found }" was sent as a parameter. This application signs in headers.
hint_line = { $found ->
    [method] The method was signed in another letter case.
    [path] The signed target lacks the query; it is path and query, as sent.
    [address] The signed target has scheme or host; it is path and query, as sent.
    [empty] The hash of an empty body was signed.
    [digits] The hash of the body was not signed as 64 lower-case hex digits.
    [body] The body itself was signed; the last line is its SHA-256 in hex.
    [nonce] The line of the nonce is missing; without a nonce it is empty.
   *[key] The line of the key differs: md5 has it at the end of the text, hmac-sha256 does not.
}
hint_in_header = "{ $found }" was sent as a header. Send "time" and "sign" as parameters, in the query or in the form.
hint_misnamed = The parameter "{ $key }" was sent. The names are exactly "time" and "sign", in lower case. If "amp;" stands in front, the address was written with "&amp;" instead of "&".
hint_app_empty = The ident is empty. Check that the program read its setting.
hint_app_key = What was sent as the ident looks like a key or a credential. Send the ident there. The key only signs, and is never sent: if it was your key, it may now be in logs, so rotate it.
hint_app_unread = A placeholder or a missing value, such as "undefined", was sent as the ident. Check that the program read its setting.
hint_app_character = No ident has such a character: only A-Z, a-z, 0-9, ".", "_" and "-" are allowed. Common causes: quotation marks, spaces, braces of a placeholder, or the application's name instead of its ident.
hint_app_length = A generated ident has 24 characters, and no ident has more than 64; this one has too few or too many. Was it copied whole?
hint_app_unknown = The ident has a possible form, but no application of this gateway has it. Letter case counts. Is it the ident of another environment?
hint_app_in_query = The parameter "app" names the application only on paths for browsers. Send the ident in the header.
hint_path = Did you mean "{ $path }"? Letter case, each slash and the extension of a path count, and nothing stands in front of it.
hint_charset = A name or value has characters outside ASCII: encode it as UTF-8 to sign and to send it, not for example as GBK.
hint_cover_rule = This application also signs, in front of the parameters: the method in upper case, a line feed, the path as it is sent (without scheme, host and query), and a line feed.

## Sign Doctor

doctor_old = The request is { $what } old. Sent now, it would be rejected as expired; this is not counted as a fault. If it was made only just now, the client's clock is slow.
doctor_other_app = The request names another application than { $what }, which was given beside it.
doctor_completed = The lines have no carriage return here. Line ends, the closing empty line and a missing Content-Length were completed.
doctor_http2 = The request is of HTTP/2 or HTTP/3, and was examined as the HTTP/1.1 request that says the same.
doctor_host = The host that the request was sent to is unknown. That of public_url was taken.
doctor_unread = This part was not read: { $what }
doctor_left = { $what } bytes follow the request. They are no part of it by its Content-Length or its chunks, so the gateway takes them for the next request.
doctor_body = The body was not pasted. So form, parameters, signature and what follows were not checked.
doctor_not_http = The gateway answers 400 without a body, because this is not HTTP as RFC 9112 has it: { $what }.
doctor_unreached = The steps that would follow were not checked.
doctor_credential = The credential was not checked.
doctor_unchecked = Not checked: whether the request is a repetition, rate limits, TLS and redirects to https, proxies in front of the gateway, and the backend.

## Pages and login

page_confirm_title = Log in to { $application }
page_confirm_compare = Compare this code with the one that { $application } shows you:
page_confirm_code = Code to compare
page_confirm_warning = Continue only if you started this login yourself and both codes are the same.
page_confirm_begun = This login was begun { $minutes } min ago, in the network { $network }.
page_confirm_network = Your browser is in another network. That is normal if { $application } runs on a server, or on another connection. If you did not start this login yourself, cancel it.
page_confirm_button = The codes are the same: log in with { $provider }
page_confirm_cancel = I did not start this login: cancel it
page_choose_button = Log in with { $provider }
page_again_title = The login provider is unavailable
page_again_wait = Your login is still open: try again in a moment.
page_again_button = Try again
page_cancelled_title = The login was cancelled
page_cancelled_close = Nobody was logged in. You can close this window.
page_late_title = This login was completed before
page_late_warning = It can no longer be cancelled. If you did not start it yourself, someone else may now be logged in to { $application } in your name. Tell { $application } at once.
page_done_title = You are logged in
page_done_close = You can close this window and go back to { $application }.
page_finishing_title = Your login is being completed
page_finishing_wait = Please wait. This page continues by itself in a few seconds.
page_finished_title = This login is finished
page_finished_link = Go back to { $application }
page_link_title = This link does not work
page_link_detail = The application created a link that this service does not accept. Go back to the application and start again. If that does not help, send its maker the details below.
page_problem_code = Error code
page_problem_status = HTTP status
page_problem_retry = Does a retry help?
    .no = No. The same request fails again.
    .yes = Yes. If the response has a Retry-After header, wait for that time first. Sign each request again, with the current "time".
    .new-login = Only in a new login.
    .log-in = Yes, once the user has logged in.
page_problem_request = Request ID
page_problem_developer = For the maker of the application
page_problem_link = More about this

## Retirement of a version

retire_used = Requests in the last { $days } days: { $number }
retire_last_used = the last one at { $at }
retire_users = applications: { $number } ({ $list })
retire_extended = applications with an extension: { $number }, the last one until { $at }
retire_used_lately = Applications with requests in the last { $days } days: { $number }. They would get 410.
retire_default = It is the default version.
retire_pinned = Applications with it as their default version: { $number }
retire_paths = Methods and paths: { $number } ({ $list })
retire_ending_paths = paths with dates of their own: { $list }
retire_compared = Pairs with { $to }: { $pairs }; paths: { $paths }, of them different: { $differing }
retire_no_proof = That is no proof: { $command }
retire_proven = Paths that clients used: { $number }, of them proven: { $proven }
retire_unpaired = Requests without a pair: { $list }
retire_few_pairs = Requests without enough pairs: { $list }
retire_unproven = unproven: { $request } (requests: { $number }): { $reason }
retire_unprovable = It is used, and has neither a bridge nor a shadow with changes.
retire_bridged = Bridge to { $to }, requests: { $number }
retire_not_bridged = No bridge
retire_own_backend = Its own backend still serves it: bridge replaces that.
retire_brownouts = Passed: { $number }
retire_brownouts_ahead = ahead: { $number } ({ $list })
retire_no_brownout = No brown-out has passed.
retire_served = Its own backend serves its requests
retire_served_by_bridge = The backends of { $to } serve its requests
retire_until = from { $at } on they get 410 version_retired
retire_no_end = there is no end
retire_no_sunset = It has no sunset.
retire_other_sunset = Its sunset is { $at }: clients know no other date.
retire_not_deprecated = It is not deprecated yet.
retire_more = { $list } and { $number } more
