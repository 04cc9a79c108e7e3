# Signpost's client for bash 5, with curl, openssl and jq: signs a request by the gateway's rules, sends exactly what it signed, and logs users in.
#
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Copy this file into your project, and source it. CONTRACT is gateway/protocol/CONTRACT.md.
#
# Functions leave results in variables and print none: a $(…) around them would lose their state, for example the corrected clock.
# They return 1 for a problem (a response with a status of 400 or more), 2 for a wrong argument, 3 if there is no usable response, 4 if the
# call was cancelled; then signpost_error and standard error say why. Neither key nor credential nor body is on a command line.

if [[ ${BASH_VERSINFO[0]:-0} -lt 5 ]] || ! type curl openssl jq >/dev/null 2>&1; then
    echo "signpost.sh needs bash 5, curl, openssl and jq" >&2
    return 2
fi

# The response of a call.
declare -g signpost_status='' signpost_body='' signpost_error=''
# Its headers by name in lower case: ${signpost_headers[retry-after]:-}.
declare -gA signpost_headers=()
# The members of a problem, empty if it has none. Decide by signpost_code: it never changes. CONTRACT 7.
declare -g signpost_code='' signpost_title='' signpost_detail='' signpost_hint='' signpost_request_id='' signpost_canonical=''
# Seconds; milliseconds since 1970.
declare -g signpost_retry_after='' signpost_server_time=''
# What signpost_login, signpost_exchange and signpost_renew got: the user's credential. Give it to each call by --credential. CONTRACT 8.
declare -g signpost_credential=''
# Of signpost_login_url: keep it in the user's session, for signpost_exchange.
declare -g signpost_code_verifier=''
# What signpost_read_json read, by path: ${signpost_json[account.username]}, ${signpost_json[events.0.id]}. Of each path the kind: text,
# number, word (true, false or null), object or array.
declare -gA signpost_json=() signpost_json_kind=()

# Settings and state of the client, and the names that its profile leaves out.
declare -gA _signpost=()
declare -ga _signpost_leave_out=()
# Settings that have one of some words, the default first.
declare -gA _signpost_words=(
    [preset]='plain decoded bilibili alipay wechat top'
    [values]='wire decoded'
    [layout]='pairs pairs-key concat concat-both'
    [empty]='keep drop'
    [cover]='parameters request'
    [algorithm]='md5 hmac-sha256'
    [carrier]='parameters headers both'
)

# signpost_client NAME=VALUE…: the settings of all calls from now on, and a new state.
#   url, key                                 the gateway's origin, and the application's key
#   app, version, language                   values of the headers
#   prefix (Acme)                            of the headers' names; header_app, header_version, header_language, header_authorization replace one
#   preset, values, layout, empty, cover, algorithm, carrier, leave_out    the sign profile; leave_out once for each name, empty for none
#   connect_timeout (5), timeout (65), max_wait (30) in seconds, retries (3): timeout is that of one request, max_wait the longest pause
#   proxy                                    http://[user:password@]host:port, empty for none; by default HTTPS_PROXY, HTTP_PROXY, NO_PROXY
#   ca_file, client_cert_file, client_key_file    PEM files
#   on_warning                               a function that gets a name and a value, once for each name; empty for none
#   clock                                    a function that leaves milliseconds since 1970 in REPLY
signpost_client() {
    local setting name value must is_listed=''
    local names=' url key app version language prefix header_app header_version header_language header_authorization preset values layout'
    names+=' empty cover algorithm carrier leave_out connect_timeout timeout max_wait retries proxy ca_file client_cert_file client_key_file'
    names+=' on_warning clock '
    local -A given=([prefix]=Acme [preset]=plain [connect_timeout]=5 [timeout]=65 [max_wait]=30 [retries]=3 [clock]=_signpost_system_clock)
    given[on_warning]=_signpost_print_warning
    local -a leave_out=()
    for setting; do
        name=${setting%%=*} value=${setting#*=}
        if [[ $setting != *=* || $names != *" $name "* ]]; then
            _signpost_fail 2 "a setting is NAME=VALUE, with one of the names$names" || return
        fi
        _signpost_allows "$name" "$value" || _signpost_fail 2 "$name must be $must" || return
        if [[ $name == leave_out ]]; then
            is_listed=yes
            [[ -z $value ]] || leave_out+=("$value")
        fi
        given[$name]=$value
    done
    if [[ -z ${given[url]:-} || -z ${given[key]:-} ]]; then
        _signpost_fail 2 "url and key are needed" || return
    fi
    case ${given[preset]} in
        decoded) given[values]=${given[values]:-decoded} ;;
        alipay | wechat | top) given[values]=${given[values]:-decoded} given[empty]=${given[empty]:-drop} ;;&
        alipay) [[ -n $is_listed ]] || leave_out=(sign_type) ;;
        wechat) given[layout]=${given[layout]:-pairs-key} ;;
        top) given[layout]=${given[layout]:-concat-both} ;;
    esac
    # Of signatures in headers; with "both" always HMAC.
    given[hash]=hmac-sha256
    [[ ${given[carrier]:-} != headers ]] || given[hash]=${given[algorithm]:-hmac-sha256}
    for name in values layout empty cover algorithm carrier; do
        given[$name]=${given[$name]:-${_signpost_words[$name]%% *}}
    done
    for name in App Version Language Authorization; do
        given[header_${name,,}]=${given[header_${name,,}]:-${given[prefix]}-X-$name}
    done
    given[url]=${given[url]%/}
    _signpost=([clock_offset]=0 [last_time]=0 [warned]='')
    for name in "${!given[@]}"; do
        _signpost[$name]=${given[$name]}
    done
    _signpost_leave_out=("${leave_out[@]}")
}

# signpost_call [OPTION]… METHOD PATH [NAME=VALUE]…: signs a call and sends it. The pairs are the query of GET, HEAD and DELETE and of a call
# with another body, otherwise the form.
#   --credential TEXT, --version TEXT, --language TEXT    of this call; the last two in place of the client's
#   --header 'NAME: VALUE'    a header of your own; repeat it for others
#   --json TEXT, --body TEXT, --file FILE, --content-type TYPE    another body: it needs carrier=headers or both
#   --output FILE, --limit BYTES    where the response's body goes, and its largest size (16 MiB)
#   --repeatable, --once    whether a repetition does no harm; by default those of GET, HEAD, PUT and DELETE do none
#   --idempotency-key TEXT    sent as Idempotency-Key; makes the call repeatable
#   --timeout SECONDS       of the whole call, with pauses
#   --cancelled FUNCTION    is called every 50 ms, in a subshell, and stops the call by returning 0
#   --separate              NAME VALUE NAME VALUE… in place of NAME=VALUE…, for names that have a =
# Sets signpost_status, signpost_headers and signpost_body. Redirects are not followed. Repeats by CONTRACT 10 before it fails.
signpost_call() {
    local method path pairs='' has_time='' is_in_headers='' target='' sent='' signed='' now deadline=''
    local -A call=()
    local -a own_headers=() sign_headers=()
    _signpost_arguments "$@" || return
    local repetitions=0 corrected_offset='' pause result compared
    if [[ -n ${call[timeout]:-} ]]; then
        _signpost_milliseconds "${call[timeout]}"
        deadline=$((${EPOCHREALTIME//[!0-9]/} / 1000 + REPLY))
    fi
    while :; do
        _signpost_sign || return
        result=0
        _signpost_send || result=$?
        _signpost_warn
        if [[ -n $corrected_offset && $result -le 1 && $signpost_code != time_out_of_window ]]; then
            _signpost[clock_offset]=$corrected_offset
            REPLY="$(((${corrected_offset#-} + 500) / 1000)) s behind"
            [[ $corrected_offset != -* ]] || REPLY=${REPLY%behind}ahead
            _signpost_warn_once clock_off "$REPLY"
        fi
        pause=${signpost_retry_after:+$((signpost_retry_after * 1000))}
        case $result:$signpost_code:$signpost_status in
            0:*) return ;;
            1:time_out_of_window:*)
                [[ -z $corrected_offset ]] && _signpost_correct_clock || break
                continue
                ;;
            # CONTRACT 7: nothing was forwarded, or (5) nothing was sent.
            1:request_timeout:* | 1:request_replayed:* | 1:rate_limited:* | 1:spool_full:* | 1:no_healthy_backend:* | 1:version_brownout:* | 5:*) ;;
            # CONTRACT 7: the call may have been executed.
            1:internal:* | 1:backend_unreachable:* | 1:store_unavailable:* | 1:backend_timeout:* | 1:gateway_stopping:* | 3:*)
                [[ ${call[repeatable]} == yes ]] || break
                ;;
            1:*:429 | 1:*:503) [[ -n $pause && ${call[repeatable]} == yes ]] || break ;;
            *) break ;;
        esac
        pause=${pause:-$(((500 << (repetitions < 20 ? repetitions : 20)) * (500 + RANDOM % 1001) / 1000))}
        _signpost_milliseconds "${_signpost[max_wait]}"
        [[ $repetitions -lt ${_signpost[retries]} && $pause -le $REPLY ]] || break
        [[ -z $deadline || $((${EPOCHREALTIME//[!0-9]/} / 1000 + pause)) -lt $deadline ]] || break
        repetitions=$((repetitions + 1))
        _signpost_pause "$pause" "${call[cancelled]:-}" || _signpost_fail 4 "the call was cancelled" || return
    done
    _signpost_fail $((result == 5 ? 3 : result)) "$signpost_error" "$compared"
}

# signpost_sign [--separate] METHOD PATH [NAME=VALUE]…: leaves in REPLY the text to send as query or form: the pairs in their order, then
# time (unless a pair has that name), then sign.
signpost_sign() {
    local method path pairs='' has_time='' is_in_headers='' corrected_offset='' target='' sent='' signed='' now
    local -A call=()
    local -a own_headers=() sign_headers=()
    _signpost_arguments "$@" || return
    is_in_headers=''
    _signpost_sign && REPLY=$signed
}

# signpost_head_text METHOD TARGET TIME NONCE BODY_HASH: leaves in REPLY the text of a signature in headers, with <APP_KEY> in the key's
# place. TARGET is path and query as sent, BODY_HASH the SHA-256 of the body. CONTRACT 3.
signpost_head_text() {
    REPLY=$1$'\n'$2$'\n'$3$'\n'$4$'\n'$5
    [[ ${_signpost[hash]} != md5 ]] || REPLY+=$'\n<APP_KEY>'
}

# signpost_head METHOD TARGET TIME NONCE BODY_HASH: leaves in REPLY the signature that is sent in headers.
signpost_head() {
    signpost_head_text "$@"
    [[ ${_signpost[hash]} != md5 ]] || REPLY=${REPLY%'<APP_KEY>'}${_signpost[key]}
    _signpost_hash "${_signpost[hash]}"
}

# signpost_encode TEXT: leaves in REPLY a name or a value, encoded by RFC 3986. It must be UTF-8.
signpost_encode() {
    _signpost_encode "$1" || _signpost_fail 2 "a name or a value is not UTF-8"
}

# signpost_canonical QUERY FORM [METHOD PATH]: leaves in REPLY the canonical string of pairs as they are sent, with <APP_KEY> in the key's
# place. CONTRACT 3.
signpost_canonical() {
    _signpost_canonical "$1" "$2" "${3:-}" "${4:-}" "<APP_KEY>"
}

# signpost_signature QUERY FORM [METHOD PATH]: leaves in REPLY the signature of pairs as they are sent, in hex. CONTRACT 3.
signpost_signature() {
    _signpost_canonical "$1" "$2" "${3:-}" "${4:-}" "${_signpost[key]:-}" && _signpost_hash "${_signpost[algorithm]}"
}

# ALGORITHM: replaces REPLY by its hash, in hex.
_signpost_hash() {
    local hash inner outer
    if [[ $1 == hmac-sha256 ]]; then
        # RFC 2104 by hand: openssl's -hmac would show the key to everyone who lists processes.
        _signpost_pads "${_signpost[key]}"
        hash=$({ printf %b "$outer" && { printf %b "$inner" && printf %s "$REPLY"; } | openssl dgst -sha256 -binary; } | openssl dgst -sha256 -r)
    else
        hash=$(printf %s "$REPLY" | openssl dgst "-$1" -r)
    fi
    REPLY=${hash%% *}
    [[ $REPLY =~ ^([0-9a-f]{32}){1,2}$ ]] || _signpost_fail 2 "openssl cannot hash"
}

# signpost_login [--timeout SECONDS] [--cancelled FUNCTION] SHOW [PROVIDER]: logs a user in by polling, and sets signpost_credential. The login
# result is in signpost_json. CONTRACT 8. Calls the function SHOW with the address that the user must open, and the code that the user
# compares. --timeout is that of the whole login. Returns 1 with the problem of a login that failed, for example login_denied.
signpost_login() {
    local wait token address end interval start left now timeout deadline='' cancelled='' must
    local -a options=()
    while [[ ${1:-} == --timeout || ${1:-} == --cancelled ]]; do
        if [[ $1 == --timeout ]]; then
            _signpost_allows timeout "${2:-}" || _signpost_fail 2 "--timeout needs $must" || return
            _signpost_milliseconds "$2"
            deadline=$((${EPOCHREALTIME//[!0-9]/} / 1000 + REPLY))
        else
            cancelled=${2:-} options=("$1" "${2:-}")
        fi
        shift 2
    done
    declare -F -- "${1:-}" >/dev/null || _signpost_fail 2 "signpost_login needs a function that shows the address" || return
    _signpost_in_time POST /login ${2:+"provider=$2"} || return
    _signpost_needs token authorize_url user_code || return
    token=${signpost_json[token]} address=${signpost_json[authorize_url]}
    _signpost_printable "$address"
    if [[ ! $address =~ ^https?:// || $REPLY != "$address" ]]; then
        _signpost_fail 3 "malformed response: authorize_url is no web address" || return
    fi
    _signpost_number interval 2 60
    interval=$((REPLY * 1000))
    _signpost_number expires_in 600 3600
    end=$((${EPOCHREALTIME//[!0-9]/} / 1000 + REPLY * 1000))
    [[ -z $deadline || $deadline -gt $end ]] || end=$deadline
    _signpost_printable "${signpost_json[user_code]}"
    "$1" "$address" "$REPLY"
    while start=$((${EPOCHREALTIME//[!0-9]/} / 1000)) && [[ $start -lt $end ]]; do
        left=$(((end - start) / 1000 - 1))
        wait=$((left < 0 ? 0 : left > 30 ? 30 : left))
        left=0 timeout=${_signpost[timeout]} _signpost[timeout]=40
        _signpost_in_time --repeatable POST /check "token=$token" "wait=$wait" || left=$?
        _signpost[timeout]=$timeout
        [[ $left == 0 ]] || return "$left"
        [[ ${signpost_json[status]:-} == pending ]] || break
        now=$((${EPOCHREALTIME//[!0-9]/} / 1000))
        left=$((end > now ? end - now : 0))
        [[ $((now - start)) -ge 15000 ]] || _signpost_pause $((interval < left ? interval : left)) "$cancelled" ||
            _signpost_fail 4 "the login was cancelled" || return
    done
    _signpost_in_time --repeatable POST /user/login "token=$token" && _signpost_take_login
}

# As signpost_login, whose options and deadline it has.
_signpost_in_time() {
    local left
    if [[ -n $deadline ]]; then
        left=$((deadline - ${EPOCHREALTIME//[!0-9]/} / 1000))
        [[ $left -gt 0 ]] || _signpost_fail 3 "the login was not completed in time" || return
        _signpost_seconds "$left"
        _signpost_object --timeout "$REPLY" "${options[@]}" "$@"
    else
        _signpost_object "${options[@]}" "$@"
    fi
}

_signpost_take_login() {
    _signpost_needs authorization && signpost_credential=${signpost_json[authorization]}
}

# signpost_login_url RETURN_TO [PROVIDER]: begins a redirect login: leaves the address to open in REPLY, and signpost_code_verifier. Put a new
# random value into the query of RETURN_TO and into the user's session. When the user comes back, compare them. CONTRACT 8 and 10.
signpost_login_url() {
    local challenge
    [[ ${_signpost[carrier]:-} != headers ]] || _signpost_fail 2 "a browser cannot sign in headers: carrier must be parameters or both" || return
    signpost_code_verifier=$(openssl rand -base64 32 | tr -d '=\n' | tr +/ -_)
    challenge=$(printf %s "$signpost_code_verifier" | openssl dgst -sha256 -binary | openssl base64 -A | tr -d '=\n' | tr +/ -_)
    signpost_sign GET /login ${_signpost[app]:+"app=${_signpost[app]}"} "return_to=$1" ${2:+"provider=$2"} \
        "code_challenge=$challenge" code_challenge_method=S256 || return
    REPLY=${_signpost[url]}/login?$REPLY
}

# signpost_exchange TICKET [CODE_VERIFIER]: ends a redirect login, and sets signpost_credential. A ticket serves once, within 60 s.
signpost_exchange() {
    _signpost_object POST /user/login "ticket=$1" ${2:+"code_verifier=$2"} && _signpost_take_login
}

# signpost_renew --credential TEXT: sets signpost_credential to a new one. The old one ends 60 s later.
signpost_renew() {
    _signpost_object --repeatable "$@" POST /user/renew && _signpost_take_login
}

# signpost_logout --credential TEXT: ends the login.
signpost_logout() {
    signpost_call "$@" POST /user/logout
}

# signpost_user --credential TEXT: the account of the user who is logged in, in signpost_json.
signpost_user() {
    _signpost_object "$@" GET /user
}

# signpost_events --credential TEXT [limit=NUMBER] [before=NEXT]: a page of the account's events, in signpost_json. Since v2.
signpost_events() {
    _signpost_object "${@:1:2}" GET /events "${@:3}"
}

# signpost_send_event --credential TEXT EVENT [data=TEXT] [idempotency_key=KEY]: stores an event with the account; the result is in
# signpost_json. It is repeated after a failure only if it has an idempotency_key.
signpost_send_event() {
    local argument option=--once
    for argument in "${@:4}"; do
        [[ $argument != idempotency_key=* ]] || option=--repeatable
    done
    _signpost_object "${@:1:2}" "$option" POST /event/send "event=${3:-}" "${@:4}"
}

# signpost_read_json TEXT: reads a document into signpost_json and signpost_json_kind. Returns 1, with both empty, if it is none.
signpost_read_json() {
    local index path
    local -a parts
    signpost_json=() signpost_json_kind=()
    # Of each value path, kind and text. What a variable cannot hold becomes U+FFFD.
    mapfile -d '' -t parts < <(jq -js 'def part: split("\u0000") | join("\ufffd") + "\u0000";
        if length == 1 then .[0] else error end | path(..) as $path | getpath($path) | type as $type
        | ($path | map(tostring) | join(".") | part),
          ({ string: "text", boolean: "word", null: "word" }[$type] // $type | part),
          (if $type == "object" or $type == "array" then "" else tostring end | part)' 2>/dev/null <<<"$1")
    for ((index = 0; index < ${#parts[@]}; index += 3)); do
        path=${parts[index]}
        # The document's own path is a dot; and bash reserves two names.
        [[ -n $path && $path != [@*] ]] || path=.$path
        signpost_json_kind[$path]=${parts[index + 1]} signpost_json[$path]=${parts[index + 2]}
    done
    [[ ${#parts[@]} -gt 0 ]]
}

_signpost_fail() {
    _signpost_printable "$2"
    signpost_error=$REPLY${3:-}
    printf 'signpost: %s\n' "$signpost_error" >&2
    return "$1"
}

# TEXT: leaves it in REPLY, at most 16 Ki characters, with spaces for control and format characters and separators of lines: it can reach a
# terminal or a log. CONTRACT 7. What is not UTF-8 becomes ASCII.
_signpost_printable() {
    local LC_ALL=C text=${1:0:16384}
    _signpost_encode "$text" || text=${text//[![:ascii:]]/?}
    text=${text//[[:cntrl:]]/ }
    text=${text//$'\xC2'[$'\x80'-$'\x9F\xAD']/ }
    text=${text//$'\xD8'[$'\x80'-$'\x85\x9C']/ }
    text=${text//$'\xDB\x9D'/ } text=${text//$'\xDC\x8F'/ }
    text=${text//$'\xE0\xA2'[$'\x90\x91']/ } text=${text//$'\xE0\xA3\xA2'/ } text=${text//$'\xE1\xA0\x8E'/ }
    text=${text//$'\xE2\x80'[$'\x8B\x8E\x8F\xA8'-$'\xAE']/ }
    text=${text//$'\xE2\x81'[$'\xA0'-$'\xA4\xA6'-$'\xAF']/ }
    text=${text//$'\xEF\xBB\xBF'/ } text=${text//$'\xEF\xBF'[$'\xB9'-$'\xBB']/ }
    text=${text//$'\xF0\x91\x82\xBD'/ } text=${text//$'\xF0\x91\x83\x8D'/ } text=${text//$'\xF0\x93\x90'[$'\xB0'-$'\xBF']/ }
    text=${text//$'\xF0\x9B\xB2'[$'\xA0'-$'\xA3']/ } text=${text//$'\xF0\x9D\x85'[$'\xB3'-$'\xBA']/ }
    # The tags, and what is not assigned beside them.
    REPLY=${text//$'\xF3\xA0'[$'\x80\x81']?/ }
}

# Whether a setting can have the value; must says what it must be.
_signpost_allows() {
    local LC_ALL=C origin='^[Hh][Tt][Tt][Pp][Ss]?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:([0-9]{1,5}))?/?$'
    case $1 in
        url)
            must='http:// or https:// with a host and perhaps a port, and nothing else'
            [[ $2 =~ $origin && $((10#0${BASH_REMATCH[3]})) -le 65535 ]]
            ;;
        key)
            must='text without white space at its ends; the line break of its file, for example, is none of it'
            [[ -n $2 && ! $2 =~ ^[[:space:]]|[[:space:]]$ ]] && _signpost_encode "$2"
            ;;
        app | version | language | credential | header | content_type | idempotency_key) must='printable ASCII: it is sent as a header' && [[ $2 != *[!\ -~]* ]] ;;
        prefix) must='a letter, then at most 31 letters, digits and -' && [[ $2 =~ ^[A-Za-z][A-Za-z0-9-]{0,31}$ ]] ;;
        header_*) must='the name of a header' && [[ $2 =~ ^[A-Za-z0-9_-]+$ ]] ;;
        leave_out) must='a name other than time' && [[ $2 != time ]] ;;
        proxy) must='http://host:port' && [[ -z $2 || $2 =~ ^(http://)?[^[:space:]\"]+$ ]] ;;
        ca_file | client_cert_file | client_key_file | file) must='a file that can be read' && [[ -r $2 && $2 != *[$'\n']* ]] ;;
        output) must='a file that can be written' && : 2>/dev/null >"$2" ;;
        limit) must='a number of bytes' && [[ $2 =~ ^[0-9]{1,15}$ ]] ;;
        json | body) ;;
        connect_timeout | timeout | max_wait) must='seconds' && [[ $2 =~ ^[0-9]{1,6}(\.[0-9]+)?$ ]] ;;
        retries) must='a number' && [[ $2 =~ ^[0-9]{1,6}$ ]] ;;
        on_warning | clock | cancelled) must='the name of a function' && { [[ $1$2 == on_warning ]] || declare -F -- "$2" >/dev/null; } ;;
        *) must="one of ${_signpost_words[$1]}" && [[ -n $2 && " ${_signpost_words[$1]} " == *" $2 "* ]] ;;
    esac
}

# Reads a call's arguments into variables of the caller: method, path; call, by option; own_headers; pairs, encoded; has_time; is_in_headers.
_signpost_arguments() {
    local LC_ALL=C must name value is_separate='' taken=' host connection content-length content-type transfer-encoding expect te trailer upgrade '
    [[ -n ${_signpost[url]:-} ]] || _signpost_fail 2 "call signpost_client first" || return
    while [[ ${1:-} == --* ]]; do
        name=${1#--} name=${name//-/_}
        case $1 in
            --repeatable) call[repeatable]=yes ;;
            --once) call[repeatable]=no ;;
            --separate) is_separate=yes ;;
            --credential | --version | --language | --header | --json | --body | --file | --content-type | --output | --limit | --timeout | \
                --cancelled | --idempotency-key)
                [[ $# -gt 1 ]] && _signpost_allows "$name" "$2" || _signpost_fail 2 "$1 needs ${must:-a value}" || return
                if [[ $name == header ]]; then
                    value=${2%%:*} taken+=" ${_signpost[header_app]} ${_signpost[header_version]} ${_signpost[header_language]} "
                    taken+=" ${_signpost[header_authorization]} ${_signpost[prefix]}-x-time ${_signpost[prefix]}-x-sign ${_signpost[prefix]}-x-nonce "
                    if [[ ! $2 =~ ^[A-Za-z0-9_-]+: || ${taken,,} == *" ${value,,} "* ]]; then
                        _signpost_fail 2 "--header needs 'NAME: VALUE', and no header of the client's own" || return
                    fi
                    own_headers+=("$2")
                else
                    call[$name]=$2
                fi
                shift
                ;;
            *) _signpost_fail 2 "there is no option $1" || return ;;
        esac
        shift
    done
    method=${1:-} path=${2:-}
    [[ $method =~ ^(GET|HEAD|POST|PUT|PATCH|DELETE)$ ]] || _signpost_fail 2 "method must be GET, HEAD, POST, PUT, PATCH or DELETE" || return
    [[ $method =~ ^(POST|PATCH)$ && -z ${call[idempotency_key]:-} ]] || call[repeatable]=${call[repeatable]:-yes}
    call[repeatable]=${call[repeatable]:-no}
    local pchars="^/([A-Za-z0-9._~!\$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$" dots='/(\.|%2[Ee]){1,2}(/|$)'
    if [[ ! $path =~ $pchars || $path =~ $dots ]]; then
        _signpost_fail 2 "path must begin with /, be encoded, and have no query and no segment . or .." || return
    fi
    _signpost_check_body || return
    shift 2
    if [[ ${_signpost[carrier]} == headers || ${_signpost[carrier]} == both && (-n ${call[kind]} || $# == 0 || ! $method =~ ^(GET|POST)$) ]]; then
        is_in_headers=yes
    fi
    while [[ $# -gt 0 ]]; do
        if [[ -n $is_separate ]]; then
            [[ $# -gt 1 ]] || _signpost_fail 2 "a name has no value" || return
            name=$1 value=$2
            shift
        else
            [[ $1 == *=* ]] || _signpost_fail 2 "a pair must be NAME=VALUE" || return
            name=${1%%=*}
            value=${1:${#name}+1}
        fi
        shift
        [[ $name != sign || -n $is_in_headers ]] || _signpost_fail 2 "a pair is named sign: the client adds it" || return
        [[ $name != time ]] || has_time=yes
        signpost_encode "$name" || return
        pairs+=${pairs:+&}$REPLY=
        signpost_encode "$value" || return
        pairs+=$REPLY
    done
}

# Leaves in call[kind] of the caller json, body or file, or nothing without another body.
_signpost_check_body() {
    local kind
    call[kind]=''
    for kind in json body file; do
        if [[ -v call[$kind] ]]; then
            [[ -z ${call[kind]} ]] || _signpost_fail 2 "a call has one of --json, --body and --file" || return
            call[kind]=$kind
        fi
    done
    [[ -n ${call[kind]} || -z ${call[content_type]:-} ]] || _signpost_fail 2 "--content-type needs a body" || return
    [[ -n ${call[kind]} ]] || return 0
    [[ $method != GET && $method != HEAD ]] || _signpost_fail 2 "$method has no body" || return
    [[ ${_signpost[carrier]} != parameters ]] ||
        _signpost_fail 2 "--json, --body and --file are signed in headers: set carrier=headers or carrier=both" || return
    [[ ${call[kind]} != json ]] || call[body]=${call[json]}
}

# Signs the caller's call: leaves target and sent (the form or other body), sign_headers, and signed: the text, whole or of headers.
_signpost_sign() {
    local nonce hash
    # A time that no other request has: two equal requests with one time would have one signature.
    "${_signpost[clock]}"
    now=$((REPLY > _signpost[last_time] ? REPLY : _signpost[last_time] + 1))
    _signpost[last_time]=$now
    now=$((now + ${corrected_offset:-${_signpost[clock_offset]}}))
    target=$path sent='' sign_headers=()
    local is_form=''
    [[ -n ${call[kind]} || ! $method =~ ^P ]] || is_form=yes
    if [[ -z $is_in_headers ]]; then
        signed=$pairs
        [[ -n $has_time ]] || signed+=${signed:+&}time=$now
        signpost_signature '' "$signed" "$method" "$path" || return
        signed=$signed\&sign=$REPLY
        [[ -n $is_form ]] && sent=$signed || target+="?$signed"
        return 0
    fi
    [[ -n $is_form ]] && sent=$pairs || target+=${pairs:+?$pairs}
    [[ -z ${call[kind]} ]] || sent=${call[body]:-}
    if [[ ${call[kind]} == file ]]; then
        hash=$(openssl dgst -sha256 -r <"${call[file]}") || _signpost_fail 2 "--file cannot be read" || return
        hash=${hash%% *}
    else
        REPLY=$sent
        _signpost_hash sha256 || return
        hash=$REPLY
    fi
    nonce=$(openssl rand -hex 8)
    signpost_head "$method" "$target" "$now" "$nonce" "$hash" || return
    sign_headers=("${_signpost[prefix]}-X-Time: $now" "${_signpost[prefix]}-X-Sign: $REPLY" "${_signpost[prefix]}-X-Nonce: $nonce")
    signpost_head_text "$method" "$target" "$now" "$nonce" "$hash"
    signed=$REPLY
}

_signpost_system_clock() {
    REPLY=$((${EPOCHREALTIME//[!0-9]/} / 1000))
}

# Leaves in corrected_offset of the caller what to add to the clock. Returns 1 if that is more than a day: otherwise an intermediary could
# obtain signatures of any time.
_signpost_correct_clock() {
    local day=86400000
    [[ -n $signpost_server_time ]] || return 1
    "${_signpost[clock]}"
    [[ $((signpost_server_time - REPLY)) -ge -$day && $((signpost_server_time - REPLY)) -le $day ]] || return 1
    corrected_offset=$((signpost_server_time - REPLY))
    # Otherwise times would go on from that of a clock that was set back.
    [[ $((_signpost[last_time] - REPLY)) -lt 1000 ]] || _signpost[last_time]=$REPLY
}

_signpost_encode() {
    local LC_ALL=C text=$1 piece encoded offset index code continuations=0 low=128 high=191
    REPLY=''
    # In pieces: to index a long text, or to append to one, is slow.
    for ((offset = 0; offset < ${#text}; offset += 200)); do
        piece=${text:offset:200} encoded=''
        if [[ $continuations == 0 && $piece != *[!A-Za-z0-9._~-]* ]]; then
            REPLY+=$piece
            continue
        fi
        for ((index = 0; index < ${#piece}; index++)); do
            printf -v code %d "'${piece:index:1}"
            code=$((code & 255))
            if [[ $continuations -gt 0 ]]; then
                [[ $code -ge $low && $code -le $high ]] || return 1
                continuations=$((continuations - 1)) low=128 high=191
            elif [[ $code -ge 128 ]]; then
                # UTF-8, RFC 3629: neither overlong, nor a surrogate, nor beyond U+10FFFF.
                [[ $code -ge 194 && $code -le 244 ]] || return 1
                continuations=$((code < 224 ? 1 : code < 240 ? 2 : 3))
                case $code in
                    224) low=160 ;;
                    237) high=159 ;;
                    240) low=144 ;;
                    244) high=143 ;;
                esac
            elif [[ ${piece:index:1} == [A-Za-z0-9._~-] ]]; then
                encoded+=${piece:index:1}
                continue
            fi
            printf -v code %%%02X "$code"
            encoded+=$code
        done
        REPLY+=$encoded
    done
    [[ $continuations == 0 ]]
}

# Leaves in REPLY a name or a value that was sent, decoded.
_signpost_decode() {
    local LC_ALL=C text=${1//+/ }
    if [[ $text == *%* ]]; then
        if [[ $text =~ %(.?$|[^0-9A-Fa-f]|.[^0-9A-Fa-f]|00) ]]; then
            _signpost_fail 2 "query or form has a % without two hex digits, or %00, which the shell cannot hold" || return
        fi
        text=${text//\\/"\\\\"}
        printf -v text %b "${text//%/"\\x"}"
    fi
    if [[ $text == *[![:ascii:]]* ]]; then
        _signpost_encode "$text" || _signpost_fail 2 "query or form is not UTF-8 once decoded" || return
    fi
    REPLY=$text
}

# QUERY FORM METHOD PATH KEY: leaves the canonical string in REPLY.
_signpost_canonical() {
    local LC_ALL=C layout=${_signpost[layout]:-} wire=$1\&$2 part name value key other index separator='' IFS=''
    local -a keys=() texts=()
    [[ -n $layout ]] || _signpost_fail 2 "call signpost_client first" || return
    if [[ ${_signpost[cover]} == request && (-z $3 || -z $4) ]]; then
        _signpost_fail 2 "the profile covers the request: method and path are needed" || return
    fi
    [[ $layout != pairs* ]] || separator='=' IFS='&'
    while [[ -n $wire ]]; do
        part=${wire%%&*}
        wire=${wire:${#part}+1}
        name=${part%%=*}
        value=${part:${#name}+1}
        _signpost_decode "$name" || return
        key=$REPLY
        _signpost_decode "$value" || return
        [[ -n $part && $key != sign && (-n $value || ${_signpost[empty]} == keep) ]] || continue
        for other in "${_signpost_leave_out[@]}"; do
            [[ $key != "$other" ]] || continue 2
        done
        [[ ${_signpost[values]} == wire ]] || name=$key value=$REPLY
        # By the bytes of the decoded name; pairs of one name keep their order.
        index=${#keys[@]}
        while [[ $index -gt 0 && ${keys[index - 1]} > $key ]]; do
            keys[index]=${keys[index - 1]} texts[index]=${texts[index - 1]}
            index=$((index - 1))
        done
        keys[index]=$key texts[index]=$name$separator$value
    done
    REPLY=${texts[*]}
    case $layout:${_signpost[algorithm]} in
        pairs-key:*) REPLY+=${REPLY:+&}key=$5 ;;
        concat-both:md5) REPLY=$5$REPLY$5 ;;
        *:md5) REPLY+=$5 ;;
    esac
    [[ ${_signpost[cover]} != request ]] || REPLY=$3$'\n'$4$'\n'$REPLY
}

# KEY: leaves HMAC's two pads in variables of the caller, inner and outer, as escapes of printf.
_signpost_pads() {
    local LC_ALL=C digits='' index code
    if [[ ${#1} -gt 64 ]]; then
        digits=$(printf %s "$1" | openssl dgst -sha256 -r)
        digits=${digits%% *}
    else
        for ((index = 0; index < ${#1}; index++)); do
            printf -v code %d "'${1:index:1}"
            printf -v code %02x $((code & 255))
            digits+=$code
        done
    fi
    inner='' outer=''
    for ((index = 0; index < 128; index += 2)); do
        printf -v code '\\x%02x' $((16#0${digits:index:2} ^ 0x36))
        inner+=$code
        printf -v code '\\x%02x' $((16#0${digits:index:2} ^ 0x5c))
        outer+=$code
    done
}

# Sends the caller's call. Returns 1 for a problem, 3 without a usable response, 4 if it was cancelled, 5 if nothing was sent.
_signpost_send() {
    local LC_ALL=C where="$method $path at ${_signpost[url]}" config='' name value output result head line heads=0 max_head=65536
    local limit=${call[limit]:-$((16 << 20))} heads_file=''
    local -a lines
    signpost_status='' signpost_body='' signpost_error='' signpost_headers=() signpost_canonical='' compared=''
    signpost_code='' signpost_title='' signpost_detail='' signpost_hint='' signpost_request_id='' signpost_retry_after='' signpost_server_time=''
    _signpost_config url "${_signpost[url]}$target"
    [[ $method == HEAD ]] && config+=$'head\n' || _signpost_config request "$method"
    if [[ ${call[kind]} == file ]]; then
        _signpost_config data-binary "@${call[file]}"
    elif [[ $method =~ ^P || -n ${call[kind]} ]]; then
        # By standard input: a line of curl's config has a limit.
        _signpost_config data-binary @-
    fi
    [[ -z ${call[kind]} ]] || value=application/octet-stream
    [[ ${call[kind]} != json ]] || value=application/json
    [[ -z ${call[kind]} ]] || _signpost_config header "Content-Type: ${call[content_type]:-$value}"
    for name in app version language authorization; do
        value=${call[$name]-${_signpost[$name]:-}}
        [[ $name != authorization ]] || value=${call[credential]:-}
        [[ -z $value ]] || _signpost_config header "${_signpost[header_$name]}: $value"
    done
    [[ -z ${call[idempotency_key]:-} ]] || _signpost_config header "Idempotency-Key: ${call[idempotency_key]}"
    for value in "${own_headers[@]}" "${sign_headers[@]}"; do
        # curl sends an empty header if it ends with a semicolon.
        [[ $value =~ ^([^:]*):\ *$ ]] && value=${BASH_REMATCH[1]}\;
        _signpost_config header "$value"
    done
    [[ " ${own_headers[*],,}" == *' accept:'* ]] || _signpost_config header 'Accept: application/json'
    value=${http_proxy-${HTTP_PROXY:-}}
    if [[ -n ${_signpost[proxy]+set} ]]; then
        _signpost_config proxy "${_signpost[proxy]}"
        _signpost_config noproxy ''
    elif [[ ${_signpost[url],,} == http:* && -n $value ]]; then
        # curl does not heed HTTP_PROXY.
        _signpost_config proxy "$value"
    fi
    [[ -z ${_signpost[ca_file]:-} ]] || _signpost_config cacert "${_signpost[ca_file]}"
    [[ -z ${_signpost[client_cert_file]:-} ]] || _signpost_config cert "${_signpost[client_cert_file]}"
    [[ -z ${_signpost[client_key_file]:-} ]] || _signpost_config key "${_signpost[client_key_file]}"
    _signpost_milliseconds "${_signpost[timeout]}"
    [[ -z $deadline ]] || REPLY=$((deadline - ${EPOCHREALTIME//[!0-9]/} / 1000))
    if [[ $REPLY -le 0 ]]; then
        signpost_error="$where: no response in time"
        return 3
    fi
    _signpost_seconds "$REPLY"
    _signpost_config max-time "$REPLY"
    if [[ -n ${call[output]:-} ]]; then
        heads_file=$(mktemp)
        _signpost_config dump-header "$heads_file"
    else
        config+=$'include\n'
    fi
    # The outer redirection: bash warns of each byte 0 of a body, which it cannot hold.
    { output=$(
        set +eo pipefail
        if [[ -n $heads_file ]]; then
            { _signpost_curl | head -c $((limit > max_head ? limit + 1 : max_head)) >"${call[output]}"; } 2>&1
        else
            _signpost_curl 2>&1 | head -c $((max_head + limit + 1))
        fi
        printf %03d "${PIPESTATUS[0]}"
    ); } 2>/dev/null
    result=$((10#${output: -3}))
    output=${output:0:-3}
    if [[ -n $heads_file ]]; then
        [[ $result != 0 ]] || output=$(<"$heads_file")$'\r\n\r\n'
        rm -f "$heads_file"
        [[ $(wc -c <"${call[output]}") -le $limit || $output =~ ^HTTP/[0-9.]+\ [45] ]] || output="curl: (23) the response has more than $limit bytes" result=23
    elif [[ ${#output} -gt $((max_head + limit)) ]]; then
        output="curl: (23) the response has more than $limit bytes" result=23
    fi
    if [[ $result == 254 ]]; then
        signpost_error="$where: the call was cancelled"
        return 4
    elif [[ $result != 0 ]]; then
        signpost_error="$where: no usable response, exit code $result of curl"
        # Its message is at the end, and to search a long text is slow.
        [[ ${#output} -lt 1000 ]] || output=${output: -1000}
        if [[ $output == *"curl: ("* ]]; then
            output=${output##*curl: (}
            signpost_error="$where: ${output#*) }"
            signpost_error=${signpost_error%%$'\n'*}
        fi
        # No such proxy, no such host, connection refused.
        [[ $result =~ ^[567]$ ]] && return 5
        return 3
    fi
    while [[ -z $signpost_status || $signpost_status == 1?? ]]; do
        head=${output%%$'\r\n\r\n'*}
        output=${output:${#head}+4} heads=$((heads + 1))
        # At most ten interim heads.
        if [[ ${#head} -gt $max_head || ${#output} -gt $limit || $heads -gt 11 ]]; then
            signpost_status='' signpost_error="$where: the response is too long"
            return 3
        fi
        if [[ ! $head =~ HTTP/[0-9.]+\ ([0-9]{3}) ]]; then
            signpost_status='' signpost_error="$where: no usable response, malformed headers"
            return 3
        fi
        signpost_status=${BASH_REMATCH[1]}
    done
    signpost_body=$output
    mapfile -t lines < <(printf %s "$head")
    for line in "${lines[@]}"; do
        line=${line%$'\r'}
        if [[ $line =~ ^([A-Za-z0-9_-]+):[[:blank:]]*(.*[^[:blank:]])?[[:blank:]]*$ ]]; then
            name=${BASH_REMATCH[1],,}
            signpost_headers[$name]+=${signpost_headers[$name]+, }${BASH_REMATCH[2]}
        fi
    done
    [[ $signpost_status -ge 400 ]] || return 0
    [[ -z ${call[output]:-} ]] || { signpost_body=$(head -c "$max_head" "${call[output]}") && : >"${call[output]}"; }
    _signpost_problem
}

# By the caller's config. Returns curl's code, or 254 if the call was cancelled.
_signpost_curl() {
    local pid
    local -a run=(curl --disable --silent --show-error --suppress-connect-headers --globoff --path-as-is --user-agent signpost-shell/0.9.0)
    run+=(--header Expect: --connect-timeout "${_signpost[connect_timeout]}")
    if [[ -z ${call[cancelled]:-} ]]; then
        "${run[@]}" --config <(printf %s "$config") < <(printf %s "$sent")
        return
    fi
    "${run[@]}" --config <(printf %s "$config") < <(printf %s "$sent") &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        if "${call[cancelled]}"; then
            kill "$pid"
            return 254
        fi
        sleep 0.05
    done
    wait "$pid"
}

# NAME VALUE: adds an option to the caller's config, which curl reads: neither processes nor files show it.
_signpost_config() {
    local value=${2//\\/"\\\\"}
    value=${value//\"/"\\\""} value=${value//$'\n'/'\n'} value=${value//$'\r'/'\r'} value=${value//$'\t'/'\t'}
    config+="$1 = \"$value\""$'\n'
}

# MILLISECONDS FUNCTION: waits. Returns 1 if the function, if there is one, returns 0 before the end.
_signpost_pause() {
    local left end=$((${EPOCHREALTIME//[!0-9]/} / 1000 + $1))
    while left=$((end - ${EPOCHREALTIME//[!0-9]/} / 1000)) && [[ $left -gt 0 ]]; do
        [[ -z $2 ]] || ! "$2" || return 1
        _signpost_seconds $((${#2} && left > 50 ? 50 : left))
        sleep "$REPLY"
    done
}

# DATE: leaves in REPLY the seconds since 1970 of an HTTP date.
_signpost_date() {
    REPLY=$(LC_ALL=C jq -nr --arg date "$1" '$date | strptime("%a, %d %b %Y %H:%M:%S GMT") | mktime' 2>/dev/null)
}

# Reads the response as a problem. Returns 1.
_signpost_problem() {
    local text name
    signpost_request_id=${signpost_headers[x-request-id]:-}
    if [[ ${signpost_headers[retry-after]:-} =~ ^[0-9]{1,9}$ ]]; then
        signpost_retry_after=$((10#${signpost_headers[retry-after]}))
    elif _signpost_date "${signpost_headers[retry-after]:-}"; then
        signpost_retry_after=$REPLY
        _signpost_date "${signpost_headers[date]:-}" || REPLY=$EPOCHSECONDS
        signpost_retry_after=$((signpost_retry_after > REPLY ? signpost_retry_after - REPLY : 0))
    fi
    local type=${signpost_headers[content-type]:-}
    if [[ ${type,,} =~ ^application/problem\+json([[:blank:]]*(\;|$)) && ${#signpost_body} -le 16384 ]] &&
        signpost_read_json "$signpost_body" && _signpost_has_text code; then
        for name in code title detail hint canonical request_id; do
            ! _signpost_has_text "$name" || printf -v "signpost_$name" %s "$REPLY"
        done
        if [[ ${signpost_json_kind[server_time]:-} == number && ${signpost_json[server_time]} =~ ^[0-9]{1,16}$ &&
            ${signpost_json[server_time]} -lt $((1 << 53)) ]]; then
            signpost_server_time=${signpost_json[server_time]}
        fi
    fi
    text="$signpost_title ${signpost_hint:-$signpost_detail}"
    signpost_error=$signpost_status${signpost_code:+ $signpost_code}
    [[ $text == ' ' ]] || signpost_error+=": $text"
    signpost_error+=${signpost_request_id:+ (request $signpost_request_id)}
    if [[ -n $signpost_canonical ]]; then
        _signpost_printable "$signpost_canonical"
        compared=$'\n'"the gateway signed: $REPLY"
        _signpost_signed
        compared+=$'\n'"this client signed: $REPLY"
    fi
    return 1
}

# Leaves in REPLY what the caller signed, as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7.
_signpost_signed() {
    local -a masked=()
    local IFS='&' pair text=$signed secret='^(((access|refresh|id)_)?token|ticket|code(_verifier)?|state|confirm|authorization|credential|passw(or)?d'
    secret+='|(client_)?secret|api_key)=.|^[^=]*=(bearer%20)?[a-z0-9_-]{43}$'
    [[ -z $is_in_headers ]] || text=${target:${#path}+1}
    for pair in $text; do
        [[ ! ${pair,,} =~ $secret ]] || pair=${pair%%=*}=***
        masked+=("$pair")
    done
    pair=${masked[*]}
    _signpost_encode "${_signpost[key]}"
    pair=${pair//"$REPLY"/***}
    if [[ -n $is_in_headers ]]; then
        REPLY=$method$'\n'$path${text:+?}$pair${signed:${#method}+1+${#target}}
    else
        _signpost_canonical '' "$pair" "$method" "$path" '<APP_KEY>'
    fi
    _signpost_printable "${REPLY:0:2048}"
}

_signpost_warn() {
    local source=${_signpost[prefix],,}-x-version-source version=${_signpost[header_version],,} asked=${call[version]-${_signpost[version]:-}}
    version=${signpost_headers[$version]:-} asked=${asked// /}
    [[ ${signpost_headers[$source]:-} != unknown && (-z $asked || -z $version || ${asked,,} == "${version,,}") ]] ||
        _signpost_warn_once version_unknown "$version"
    [[ -z ${signpost_headers[deprecation]:-} ]] || _signpost_warn_once deprecated "${signpost_headers[deprecation]}"
    [[ -z ${signpost_headers[sunset]:-} ]] || _signpost_warn_once sunset "${signpost_headers[sunset]}"
}

_signpost_warn_once() {
    [[ ${_signpost[warned]} != *" $1 "* && -n ${_signpost[on_warning]:-} ]] || return 0
    _signpost[warned]+=" $1 "
    "${_signpost[on_warning]}" "$1" "$2" || return 0
}

_signpost_print_warning() {
    _signpost_printable "$1: $2"
    [[ $1 != version_unknown ]] || REPLY+=' served, not the version asked for'
    printf 'signpost: %s\n' "$REPLY" >&2
}

# ARGUMENTS of signpost_call: calls, and reads the response into signpost_json.
_signpost_object() {
    signpost_call "$@" || return
    signpost_read_json "$signpost_body" && [[ ${signpost_json_kind[.]} == object ]] ||
        _signpost_fail 3 "the response is no JSON object"
}

# Fails if a member of the response is no text.
_signpost_needs() {
    local name
    for name; do
        _signpost_has_text "$name" || _signpost_fail 3 "the response has no $name: is this version a login service?" || return
    done
}

# NAME: leaves in REPLY the member of that name. Returns 1 if it is no text.
_signpost_has_text() {
    REPLY=${signpost_json[$1]:-}
    [[ ${signpost_json_kind[$1]:-} == text ]]
}

# NAME DEFAULT LONGEST: leaves in REPLY the whole part of the member of that name, at least 1 and at most LONGEST.
_signpost_number() {
    REPLY=$2
    [[ ${signpost_json_kind[$1]:-} == number && ${signpost_json[$1]} =~ ^(-?[0-9]+)(\.[0-9]+)?$ ]] || return 0
    REPLY=${BASH_REMATCH[1]}
    [[ ${#REPLY} -le 6 ]] || REPLY=${REPLY:0:1}999999
    REPLY=$((REPLY < 1 ? 1 : REPLY > $3 ? $3 : REPLY))
}

_signpost_milliseconds() {
    local part=000
    [[ $1 != *.* ]] || part=${1#*.}000
    REPLY=$((10#${1%%.*} * 1000 + 10#${part:0:3}))
}

_signpost_seconds() {
    printf -v REPLY %d.%03d $(($1 / 1000)) $(($1 % 1000))
}
