# Signpost's client for bash 5, with curl and openssl: signs a request by the gateway's rules, sends exactly what it signed, and logs users in.
#
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Copy this file into your project, and source it. CONTRACT is gateway/protocol/CONTRACT.md.
#
# Functions leave results in variables and print none: a $(…) around them would lose their state, for example the corrected clock.
# They return 1 for a problem (a response with a status of 400 or more), 2 for a wrong argument, 3 if there is no usable response;
# then signpost_error and standard error say why. Neither key nor credential nor pairs are on a command line.

if [[ ${BASH_VERSINFO[0]:-0} -lt 5 ]]; then
    echo "signpost.sh needs bash 5" >&2
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
# The user's credential. signpost_login sets it, signpost_logout empties it; you can, too. CONTRACT 8.
declare -g signpost_authorization=''
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
)

# signpost_client NAME=VALUE…: the settings of all calls from now on, and a new state.
#   url, key                                 the gateway's origin, and the application's key
#   app, version, language, authorization    values of the headers
#   prefix (Acme)                            of the headers' names; header_app and so on replace one name
#   preset, values, layout, empty, cover, algorithm, leave_out    the sign profile; leave_out once for each name, empty for none
#   connect_timeout (5), timeout (65), max_wait (30) in seconds, retries (3): max_wait is the longest pause before a repetition
#   on_warning                               a function that gets a name and a value, once for each name; empty for none
#   clock                                    a function that leaves milliseconds since 1970 in REPLY
signpost_client() {
    local setting name value must is_listed=''
    local names=' url key app version language authorization prefix header_app header_version header_language header_authorization preset'
    names+=' values layout empty cover algorithm leave_out connect_timeout timeout max_wait retries on_warning clock '
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
    for name in values layout empty cover algorithm; do
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
    signpost_authorization=${given[authorization]:-}
}

# signpost_call [OPTION]… METHOD PATH [NAME=VALUE]…: signs the pairs, and sends them as query of a GET or form of a POST.
#   --repeatable, --once    whether a repetition does no harm; by default that of a GET does none
#   --timeout SECONDS       in place of the client's
#   --separate              NAME VALUE NAME VALUE… in place of NAME=VALUE…, for names that have a =
# Sets signpost_status, signpost_headers and signpost_body. Redirects are not followed. Repeats by CONTRACT 10 before it fails.
signpost_call() {
    local method path is_repeatable='' timeout=${_signpost[timeout]:-} pairs='' has_time=''
    _signpost_arguments "$@" || return
    local repetitions=0 corrected_offset='' pause result compared
    while :; do
        _signpost_sign || return
        result=0
        _signpost_send "$REPLY" || result=$?
        _signpost_warn
        if [[ -n $corrected_offset && $result -le 1 && $signpost_code != time_out_of_window ]]; then
            _signpost[clock_offset]=$corrected_offset
        fi
        pause=${signpost_retry_after:+$((signpost_retry_after * 1000))}
        case $result:$signpost_code in
            0:*) return ;;
            1:time_out_of_window)
                [[ -z $corrected_offset ]] && _signpost_correct_clock || break
                continue
                ;;
            # CONTRACT 7: nothing was forwarded, or (4) nothing was sent.
            1:request_timeout | 1:request_replayed | 1:rate_limited | 1:no_healthy_backend | 1:version_brownout | 4:*) ;;
            # CONTRACT 7: the call may have been executed.
            1:internal | 1:backend_unreachable | 1:store_unavailable | 1:backend_timeout | 1:gateway_stopping | 3:*)
                [[ $is_repeatable == yes ]] || break
                ;;
            *) break ;;
        esac
        pause=${pause:-$(((500 << (repetitions < 20 ? repetitions : 20)) * (500 + RANDOM % 1001) / 1000))}
        _signpost_milliseconds "${_signpost[max_wait]}"
        [[ $repetitions -lt ${_signpost[retries]} && $pause -le $REPLY ]] || break
        repetitions=$((repetitions + 1))
        _signpost_seconds "$pause"
        sleep "$REPLY"
    done
    _signpost_fail $((result == 4 ? 3 : result)) "$signpost_error" "$compared"
}

# signpost_sign [--separate] METHOD PATH [NAME=VALUE]…: leaves in REPLY the text to send as query or form: the pairs in their order, then
# time (unless a pair has that name), then sign.
signpost_sign() {
    local method path is_repeatable timeout pairs='' has_time='' corrected_offset=''
    _signpost_arguments "$@" && _signpost_sign
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
    local hash inner outer
    _signpost_canonical "$1" "$2" "${3:-}" "${4:-}" "${_signpost[key]:-}" || return
    if [[ ${_signpost[algorithm]:-} == hmac-sha256 ]]; then
        # RFC 2104 by hand: openssl's -hmac would show the key to everyone who lists processes.
        _signpost_pads "${_signpost[key]}"
        hash=$({ printf %b "$outer" && { printf %b "$inner" && printf %s "$REPLY"; } | openssl dgst -sha256 -binary; } | openssl dgst -sha256 -r)
    else
        hash=$(printf %s "$REPLY" | openssl dgst -md5 -r)
    fi
    REPLY=${hash%% *}
    [[ $REPLY =~ ^([0-9a-f]{32}){1,2}$ ]] || _signpost_fail 2 "openssl cannot hash"
}

# signpost_login SHOW [PROVIDER]: logs a user in by polling, and sets signpost_authorization. The login result is in signpost_json. CONTRACT 8.
# Calls the function SHOW with the address that the user must open, and the code that the user compares. Returns 1 with the problem of a
# login that failed, for example login_denied.
signpost_login() {
    local wait=30 token address end interval start left
    declare -F -- "${1:-}" >/dev/null || _signpost_fail 2 "signpost_login needs a function that shows the address" || return
    _signpost_object POST /login ${2:+"provider=$2"} || return
    _signpost_needs token authorize_url user_code || return
    token=${signpost_json[token]} address=${signpost_json[authorize_url]}
    _signpost_printable "$address"
    if [[ ! $address =~ ^https?:// || $REPLY != "$address" ]]; then
        _signpost_fail 3 "malformed response: authorize_url is no web address" || return
    fi
    _signpost_number interval 2 60
    interval=$REPLY
    _signpost_number expires_in 600 3600
    end=$((EPOCHSECONDS + REPLY))
    _signpost_printable "${signpost_json[user_code]}"
    "$1" "$address" "$REPLY"
    while [[ $EPOCHSECONDS -lt $end ]]; do
        start=$EPOCHSECONDS
        _signpost_object --repeatable --timeout $((wait + 10)) POST /check "token=$token" "wait=$wait" || return
        [[ ${signpost_json[status]:-} == pending ]] || break
        left=$((end > EPOCHSECONDS ? end - EPOCHSECONDS : 0))
        [[ $((EPOCHSECONDS - start)) -ge $((wait / 2)) ]] || sleep $((interval < left ? interval : left))
    done
    _signpost_object --repeatable POST /user/login "token=$token" || return
    _signpost_needs authorization || return
    signpost_authorization=${signpost_json[authorization]}
}

# signpost_logout: ends the login, and forgets the credential.
signpost_logout() {
    signpost_call POST /user/logout || return
    signpost_authorization=''
}

# signpost_user: the account of the user who is logged in, in signpost_json.
signpost_user() {
    _signpost_object GET /user
}

# signpost_send_event EVENT [data=TEXT] [idempotency_key=KEY]: stores an event with the account; the result is in signpost_json. It is
# repeated after a failure only if it has an idempotency_key.
signpost_send_event() {
    local argument option=--once
    for argument in "${@:2}"; do
        [[ $argument != idempotency_key=* ]] || option=--repeatable
    done
    _signpost_object "$option" POST /event/send "event=${1:-}" "${@:2}"
}

# signpost_read_json TEXT: reads a document into signpost_json and signpost_json_kind. Returns 1, with both empty, if it is none, or longer
# than 64 KiB.
signpost_read_json() {
    signpost_json=() signpost_json_kind=()
    local LC_ALL=C
    [[ ${#1} -le 65536 ]] && _signpost_parse "$1" && return
    signpost_json=() signpost_json_kind=()
    return 1
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
        app | version | language | authorization) must='printable ASCII: it is sent as a header' && [[ $2 != *[!\ -~]* ]] ;;
        prefix) must='a letter, then at most 31 letters, digits and -' && [[ $2 =~ ^[A-Za-z][A-Za-z0-9-]{0,31}$ ]] ;;
        header_*) must='the name of a header' && [[ $2 =~ ^[A-Za-z0-9_-]+$ ]] ;;
        leave_out) must='a name other than time' && [[ $2 != time ]] ;;
        connect_timeout | timeout | max_wait) must='seconds' && [[ $2 =~ ^[0-9]{1,6}(\.[0-9]+)?$ ]] ;;
        retries) must='a number' && [[ $2 =~ ^[0-9]{1,6}$ ]] ;;
        on_warning | clock) must='the name of a function' && { [[ $1$2 == on_warning ]] || declare -F -- "$2" >/dev/null; } ;;
        *) must="one of ${_signpost_words[$1]}" && [[ -n $2 && " ${_signpost_words[$1]} " == *" $2 "* ]] ;;
    esac
}

# Reads a call's arguments into variables of the caller: method, path, is_repeatable, timeout; pairs, encoded; has_time.
_signpost_arguments() {
    local LC_ALL=C must name value is_separate=''
    [[ -n ${_signpost[url]:-} ]] || _signpost_fail 2 "call signpost_client first" || return
    while [[ ${1:-} == --* ]]; do
        case $1 in
            --repeatable) is_repeatable=yes ;;
            --once) is_repeatable=no ;;
            --separate) is_separate=yes ;;
            --timeout)
                _signpost_allows timeout "${2:-}" || _signpost_fail 2 "--timeout needs $must" || return
                timeout=$2
                shift
                ;;
            *) _signpost_fail 2 "the options are --repeatable, --once, --timeout and --separate" || return ;;
        esac
        shift
    done
    method=${1:-} path=${2:-}
    [[ $method == GET || $method == POST ]] || _signpost_fail 2 "method must be GET or POST" || return
    is_repeatable=${is_repeatable:-${method/#GET/yes}}
    local pchars="^/([A-Za-z0-9._~!\$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$" dots='/(\.|%2[Ee]){1,2}(/|$)'
    if [[ ! $path =~ $pchars || $path =~ $dots ]]; then
        _signpost_fail 2 "path must begin with /, be encoded, and have no query and no segment . or .." || return
    fi
    _signpost_allows authorization "$signpost_authorization" || _signpost_fail 2 "signpost_authorization must be $must" || return
    shift 2
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
        [[ $name != sign ]] || _signpost_fail 2 "a pair is named sign: the client adds it" || return
        [[ $name != time ]] || has_time=yes
        signpost_encode "$name" || return
        pairs+=${pairs:+&}$REPLY=
        signpost_encode "$value" || return
        pairs+=$REPLY
    done
}

# Signs the caller's pairs: leaves in REPLY the text to send.
_signpost_sign() {
    local text=$pairs
    if [[ -z $has_time ]]; then
        # A time that no other request has: two equal requests with one time would have one signature.
        "${_signpost[clock]}"
        REPLY=$((REPLY > _signpost[last_time] ? REPLY : _signpost[last_time] + 1))
        _signpost[last_time]=$REPLY
        REPLY=$((REPLY + ${corrected_offset:-${_signpost[clock_offset]}}))
        text+=${text:+&}time=$REPLY
    fi
    signpost_signature '' "$text" "$method" "$path" || return
    REPLY=$text\&sign=$REPLY
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

# TEXT: sends it by the caller's method, path and timeout. Returns 1 for a problem, 3 without a usable response, 4 if nothing was sent.
_signpost_send() {
    local LC_ALL=C url=${_signpost[url]}$path config='' name value output result head line heads=0 max_head=65536 max_body=$((16 << 20))
    local -a lines
    signpost_status='' signpost_body='' signpost_error='' signpost_headers=() signpost_canonical='' compared=''
    signpost_code='' signpost_title='' signpost_detail='' signpost_hint='' signpost_request_id='' signpost_retry_after='' signpost_server_time=''
    if [[ $method == GET ]]; then
        url+="?$1"
    else
        config="data-raw = \"$1\""$'\n'
    fi
    config+="url = \"$url\""$'\n'
    for name in app version language authorization; do
        value=${_signpost[$name]:-}
        [[ $name != authorization ]] || value=$signpost_authorization
        value=${value//\\/"\\\\"}
        [[ -z $value ]] || config+="header = \"${_signpost[header_$name]}: ${value//\"/"\\\""}\""$'\n'
    done
    _signpost_milliseconds "${_signpost[connect_timeout]}"
    value=$REPLY
    _signpost_milliseconds "$timeout"
    _signpost_seconds $((value + REPLY))
    # The outer redirection: bash warns of each byte 0 of a body, which it cannot hold.
    { output=$(
        set +eo pipefail
        printf %s "$config" | curl --disable --config - --silent --show-error --include --suppress-connect-headers --globoff --path-as-is \
            --user-agent signpost-shell --header 'Accept: application/json' --header 'Expect:' \
            --connect-timeout "${_signpost[connect_timeout]}" --max-time "$REPLY" 2>&1 |
            head -c $((max_head + max_body + 1))
        printf %03d "${PIPESTATUS[1]}"
    ); } 2>/dev/null
    result=$((10#${output: -3}))
    output=${output:0:-3}
    if [[ ${#output} -gt $((max_head + max_body)) ]]; then
        signpost_error="$method $path at ${_signpost[url]}: the response is too long"
        return 3
    elif [[ $result != 0 ]]; then
        signpost_error="$method $path at ${_signpost[url]}: no usable response, exit code $result of curl"
        # Its message is at the end, and to search a long text is slow.
        [[ ${#output} -lt 1000 ]] || output=${output: -1000}
        if [[ $output == *"curl: ("* ]]; then
            output=${output##*curl: (}
            signpost_error="$method $path at ${_signpost[url]}: ${output#*) }"
            signpost_error=${signpost_error%%$'\n'*}
        fi
        # No such proxy, no such host, connection refused.
        [[ $result =~ ^[567]$ ]] && return 4
        return 3
    fi
    while [[ -z $signpost_status || $signpost_status == 1?? ]]; do
        head=${output%%$'\r\n\r\n'*}
        output=${output:${#head}+4} heads=$((heads + 1))
        # At most ten interim heads.
        if [[ ${#head} -gt $max_head || ${#output} -gt $max_body || $heads -gt 11 ]]; then
            signpost_status='' signpost_error="$method $path at ${_signpost[url]}: the response is too long"
            return 3
        fi
        if [[ ! $head =~ HTTP/[0-9.]+\ ([0-9]{3}) ]]; then
            signpost_status='' signpost_error="$method $path at ${_signpost[url]}: no usable response, malformed headers"
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
    [[ $signpost_status -lt 400 ]] || _signpost_problem "$1"
}

# TEXT that was sent: reads the response as a problem. Returns 1.
_signpost_problem() {
    local text
    signpost_request_id=${signpost_headers[x-request-id]:-}
    [[ ! ${signpost_headers[retry-after]:-} =~ ^[0-9]{1,9}$ ]] || signpost_retry_after=$((10#${signpost_headers[retry-after]}))
    if [[ ${signpost_headers[content-type]:-} =~ ^application/problem\+json([[:blank:]]*(\;|$)) && ${#signpost_body} -le 16384 ]] &&
        signpost_read_json "$signpost_body" && _signpost_has_text code; then
        signpost_code=$REPLY
        ! _signpost_has_text title || signpost_title=$REPLY
        ! _signpost_has_text detail || signpost_detail=$REPLY
        ! _signpost_has_text hint || signpost_hint=$REPLY
        ! _signpost_has_text canonical || signpost_canonical=$REPLY
        ! _signpost_has_text request_id || signpost_request_id=$REPLY
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
        _signpost_signed "$1"
        compared+=$'\n'"this client signed: $REPLY"
    fi
    return 1
}

# TEXT: leaves in REPLY what the client signed, as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7.
_signpost_signed() {
    local -a masked=()
    local IFS='&' pair secret='^(((access|refresh|id)_)?token|ticket|code(_verifier)?|state|confirm|authorization|credential|passw(or)?d'
    secret+='|(client_)?secret|api_key)=.|^[^=]*=(bearer%20)?[a-z0-9_-]{43}$'
    for pair in $1; do
        [[ ! ${pair,,} =~ $secret ]] || pair=${pair%%=*}=***
        masked+=("$pair")
    done
    pair=${masked[*]}
    _signpost_encode "${_signpost[key]}"
    _signpost_canonical '' "${pair//"$REPLY"/***}" "$method" "$path" '<APP_KEY>'
    _signpost_printable "${REPLY:0:2048}"
}

_signpost_warn() {
    local source=${_signpost[prefix],,}-x-version-source version=${_signpost[header_version],,} asked=${_signpost[version]:-}
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
        _signpost_fail 3 "the response is no JSON object of at most 64 KiB"
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

_signpost_parse() {
    local LC_ALL=C text=$1 length offset=0 rest='' expected=value path='' depth=0 first value kind
    local -a closers=() prefixes=() counts=()
    length=${#text}
    while :; do
        rest=${rest#"${rest%%[!$' \t\r\n']*}"}
        if [[ -z $rest ]]; then
            _signpost_parse_more || break
            continue
        fi
        first=${rest:0:1}
        case $expected$first in
            value[\{[] | item[\{[])
                [[ $depth -lt 100 ]] || return 1
                depth=$((depth + 1)) prefixes[depth]=${path:+$path.} counts[depth]=0 value='' rest=${rest:1}
                if [[ $first == '{' ]]; then
                    kind=object closers[depth]='}' expected=member
                else
                    kind=array closers[depth]=']' expected=item
                fi
                _signpost_store
                path=${prefixes[depth]}0
                ;;
            value* | item[!]]*)
                if [[ $first == '"' ]]; then
                    kind=text
                    _signpost_parse_text || return
                else
                    while value=${rest%%[],\}[:space:]]*} && [[ $value == "$rest" && ${#value} -lt 1000 ]]; do
                        _signpost_parse_more || break
                    done
                    rest=${rest:${#value}}
                    if [[ $value =~ ^-?(0|[1-9][0-9]*)(\.[0-9]+)?([Ee][-+]?[0-9]+)?$ ]]; then
                        kind=number
                    elif [[ $value =~ ^(true|false|null)$ ]]; then
                        kind=word
                    else
                        return 1
                    fi
                fi
                _signpost_store
                expected=next
                ;;
            member\" | name\")
                _signpost_parse_text || return
                path=${prefixes[depth]}$value expected=colon
                # Of each member in it there is a copy.
                [[ ${#path} -le 1000 ]] || return 1
                ;;
            colon:) rest=${rest:1} expected=value ;;
            next, )
                [[ $depth -gt 0 ]] || return 1
                rest=${rest:1} counts[depth]=$((counts[depth] + 1)) path=${prefixes[depth]}${counts[depth]} expected=value
                [[ ${closers[depth]} == ']' ]] || expected=name
                ;;
            next[]\}] | item] | member\})
                [[ $depth -gt 0 && $first == "${closers[depth]}" ]] || return 1
                rest=${rest:1} depth=$((depth - 1)) expected=next
                ;;
            *) return 1 ;;
        esac
    done
    [[ $expected == next && $depth == 0 ]]
}

# Moves a piece of the caller's text to its rest: to cut a long text often is slow. Returns 1 at the end.
_signpost_parse_more() {
    [[ $offset -lt $length ]] || return 1
    rest+=${text:offset:200} offset=$((offset + 200))
}

# Stores the caller's value under its path. The document's own path is a dot; and bash reserves two names.
_signpost_store() {
    case $path in
        '' | @ | \*) signpost_json[.$path]=$value signpost_json_kind[.$path]=$kind ;;
        *) signpost_json[$path]=$value signpost_json_kind[$path]=$kind ;;
    esac
}

# Cuts a text in quotes from the caller's rest, and leaves it in value.
_signpost_parse_text() {
    local piece escape code
    rest=${rest:1} value=''
    while :; do
        piece=${rest%%[\"\\]*}
        [[ $piece != *[$'\x01'-$'\x1F']* ]] || return 1
        value+=$piece rest=${rest:${#piece}}
        # An escape has at most 12 bytes.
        [[ ${#rest} -ge 12 ]] || _signpost_parse_more || [[ -n $rest ]] || return 1
        escape=${rest:0:2}
        [[ $escape == [\"\\]* ]] || continue
        if [[ $escape == \"* ]]; then
            rest=${rest:1}
            return
        fi
        rest=${rest:2}
        case $escape in
            \\[\"\\/]) value+=${escape:1} ;;
            \\[bfnrt]) printf -v escape %b "$escape" && value+=$escape ;;
            \\u)
                [[ ${rest:0:4} =~ ^[0-9A-Fa-f]{4}$ ]] || return 1
                code=$((16#${rest:0:4})) rest=${rest:4}
                if [[ $code -ge 0xD800 && $code -lt 0xDC00 && ${rest:0:6} =~ ^\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}$ ]]; then
                    code=$((0x10000 + ((code - 0xD800) << 10) + 16#${rest:2:4} - 0xDC00)) rest=${rest:6}
                fi
                # U+0000 and lone surrogates become what is not UTF-8, since they are no text here.
                if [[ $code -ge 0x10000 ]]; then
                    printf -v escape '\\x%x' $((code >> 18 | 0xF0)) $((code >> 12 & 63 | 128)) $((code >> 6 & 63 | 128)) $((code & 63 | 128))
                elif [[ $code -ge 0x800 ]]; then
                    printf -v escape '\\x%x' $((code >> 12 | 0xE0)) $((code >> 6 & 63 | 128)) $((code & 63 | 128))
                elif [[ $code -ge 0x80 || $code == 0 ]]; then
                    printf -v escape '\\x%x' $((code >> 6 | 0xC0)) $((code & 63 | 128))
                else
                    printf -v escape '\\x%x' "$code"
                fi
                printf -v escape %b "$escape"
                value+=$escape
                ;;
            *) return 1 ;;
        esac
    done
}

_signpost_milliseconds() {
    local part=000
    [[ $1 != *.* ]] || part=${1#*.}000
    REPLY=$((10#${1%%.*} * 1000 + 10#${part:0:3}))
}

_signpost_seconds() {
    printf -v REPLY %d.%03d $(($1 / 1000)) $(($1 % 1000))
}
