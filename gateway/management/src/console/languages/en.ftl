# The texts of the console. Words of the API, for example states, are attributes with the API's word as name.

## The frame

console_skip = Skip to the content
console_navigation = Parts of the console
console_overview = Overview
console_apps = Applications
console_versions = Versions
console_audit = Audit
console_settings = Settings
console_sign_out = Sign out
console_problem_code = Code
console_problem_request = Request
console_problem_back = Back to the overview
console_next_page = Next page
console_copy = Copy
console_copied = Copied
console_done = Done
    .signed-out = You are signed out.
    .session-ended = Your token has ended or was revoked. Sign in again.
    .app-update = The application was changed.
    .app-end-overlap = The old key is no longer valid.
    .app-enable = The application's requests are accepted again.
    .app-disable = The application's requests are rejected from now on.
    .app-delete = The application was deleted.
    .drain = The address gets no new requests.
    .undrain = The address gets requests again.
    .reloaded = The configuration was reloaded.
    .token-revoked = The token was revoked. Every gateway rejects it.

## Sign in

console_sign_in = Sign in
console_sign_in_how = Sign in with a token of the management API. An administrator creates one for you, or you do it on the gateway's machine:
console_sign_in_button = Sign in
console_sign_in_account = Sign in with an account
console_account_failed = The sign-in has failed, or was not confirmed. Begin again.
console_account_other_browser = This sign-in was begun in another browser, or too long ago. Begin again.
console_account_busy = Many people sign in right now. Begin again in some seconds.
console_account_no_app = The application by which the console logs users in does not exist, or is disabled: management.console.application in the gateway's file.
console_account_unknown = The account { $username } of { $provider } may not sign in. An administrator allows it in the gateway's file, in management.console.accounts.

## Overview

console_attention = What needs attention
console_attention_none = Nothing: all gateways are ready, and all addresses get requests.
console_attention_brownout = { $version } is in a brown-out: its requests are rejected now.
console_attention_address = { $address } of { $backend } is { $health }.
console_attention_readiness = The gateway on { $host } says: { $readiness }
console_attention_differs = The gateway on { $host } has another configuration than the others. Keys that differ: { $keys }
console_attention_reload = The gateway on { $host } has rejected its last reload.
console_gateways = Gateways
console_last_changes = Last changes
console_all_changes = All changes of this application
console_host = Host
console_ready = State
console_release = Release
console_started = Started
console_configuration = Configuration
console_certificates = Certificates
console_readiness = State of a gateway
    .ready = ready
    .not-ready = not ready
    .gone = gone
    .differs = differs

## Applications

console_search_apps = Ident, or the beginning of a name
console_search = Search
console_new_app = New application
console_import = Import
console_apps_none = There is no application yet. Create the first one, or import those that you have.
console_apps_not_found = No application has this ident, or a name that begins like this. Letter case counts.
console_name = Name
console_ident = Ident
console_key = Key
console_state = State
    .active = active
    .disabled = disabled
    .revoked = revoked
console_default_version = Default version
console_created = Created
console_rate_limit = Rate limit
console_profile = Sign profile
console_return_to = Origins that a login may return to
console_overlap = The old key is valid until
console_revision = Revision
console_as_gateway = as the gateway
console_unchanged = unchanged
console_create = Create
console_created_app = { $name } was created
console_rotated = { $name } has a new key
console_key_once = The key is shown only now. Put it where its clients read it.
console_try = Try it
console_samples = In each language
console_samples_how = Each uses the client library of its language, which is one file of gateway/clients in Signpost's source. It reads the key from the file data/app.key.
console_to_app = Go to { $name }
console_rotate_how = Clients sign with the new key from now on. The old one stays valid for some hours, so that all can change.
console_end_overlap_how = Clients that still sign with the old key are rejected at once.
console_disable_how = All requests of the application are rejected until it is enabled again. Its key and settings stay.
console_enable_how = The application's requests are accepted again, with the same key.
console_delete_how = The application, its key and its settings are deleted for good. Its clients are rejected.
console_delete_other_name = Nothing was deleted: the name that you have typed is not the application's.
console_stale = Somebody has changed the application meanwhile. Above is how it is now, in the form what you have filled in. Compare, and send the form again if it still holds.
console_import_how = One application for each line, as CSV or JSON lines, each with its ident and key. All are imported, or none: then you see what is wrong with which line.
console_imported = Imported: { $number }.
console_allow_weak_key = Accept keys under 128 bits
console_field_name = Name
    .hint = 1 to 64 characters. Users see it when they log in.
console_field_default_version = Version for requests that name none
console_field_rate_limit = Own rate limit
    .hint = For example 100/200: requests a second, and at once. Or: unlimited. Empty: as the gateway.
console_field_return_to = Origins that a login may return to
    .hint = One for each line, for example https://shop.example.
console_field_preset = Canonical string
console_field_algorithm = Algorithm
console_field_cover = What is signed
console_field_replay = Repeated requests
console_field_overlap_hours = Hours for which the old key stays valid
    .hint = 0 to 720.
console_field_confirm = Type the application's name
console_field_reason = Why
    .hint = For the audit; may be empty.
console_field_file = Lines
console_field_token = Token
    .hint = It begins with sp_.
console_change = Change
    .update = Change settings
    .rotate = New key
    .end-overlap = End the old key
    .enable = Enable
    .disable = Disable
    .delete = Delete
    .drain = Take out
    .undrain = Take back
    .revoke = Revoke

## Versions

console_version = Version
console_stage = Stage
console_stage_of = Stage of a version
    .current = current
    .deprecated = deprecated
    .brownout = brown-out
    .past-sunset = past its sunset
    .retired = retired
console_default = default
console_deprecated = Deprecated from
console_sunset = Sunset
console_after_sunset = After it
console_after = After a sunset
    .serve = requests are served
    .gone = requests get 410
console_today = today
console_brownout = Brown-out
console_addresses = Addresses
console_used_by = Last 30 days: { $requests } requests, { $percent } % of all, by { $applications } applications.
console_bridge_to = Its clients are served by { $to }, over a bridge.
console_shadow_of = Copies for { $to }: { $pairs } pairs of responses, { $paths } paths differ, for { $applications } of { $all } applications.
console_shadow_changed = With its changes, copies for { $to }: { $pairs } pairs of responses, { $paths } paths differ, for { $applications } of { $all } applications.
console_unseen = Not seen yet
console_path = Path
console_here = Here
console_there = There
console_pairs = Pairs
console_share = Share of all requests
console_users = Who still uses it
console_requests = Requests
console_client = Last client
console_until = until
console_force = Also if no other address is left: its requests are then rejected
console_field_minutes = Minutes until it comes back by itself
console_kind = What requests are counted for
    .callbacks = callbacks of the login
    .others = other applications
console_part = Part of a version
    .own = the version's own
    .canary = canary
    .route = route
console_health = Health of an address
    .healthy = healthy
    .unhealthy = unhealthy
    .unreachable = unreachable
    .drained = taken out
    .unchecked = not checked
    .unknown = unknown

## Audit

console_audit_none = There is no entry.
console_filter = Filter
console_when = When
console_who = Who
console_action = Action
console_subject = Of what
console_changes = Before → afterwards
console_reason = Why
console_field_since = Since
    .hint = For example 7d, 12h or 2026-11-26.
console_field_actor = Who
console_field_subject = Of what

## Settings

console_tokens = Tokens
console_reload = Reload
console_configuration_how = What this gateway runs with. It comes from its files; nothing here edits them. Secrets are hidden.
console_setting = Key
console_value = Value
console_source = From
console_source_of = Where a value is from
    .file = the file
    .environment = the environment
    .secret-file = a file of its own
    .default = default
console_before = Before
console_afterwards = Afterwards
console_reload_changes = A reload changes
console_reload_later = These need a new process
console_reload_nothing = The files say what is in force: a reload changes nothing.
console_reload_rejected = A reload would be rejected, and the configuration in force stays. Mend the files first:
console_role = Role
    .viewer = viewer
    .operator = operator
    .admin = administrator
console_last_used = Last used
console_ends = Ends
console_new_token = New token
console_created_token = Token { $name } was created
console_token_once = The token is shown only now. Hand it to its user on a safe way.
console_field_role = Role
console_field_days = Days for which it is valid
    .hint = 1 to 366.

## Traffic

console_traffic = Requests of the last hour
console_traffic_none = No request has come in the last hour. A gateway shows its requests here some seconds after it has got them.
console_traffic_most = Up to { $requests } requests a minute
console_traffic_begin = an hour ago
console_traffic_end = now
console_no_version = without a version
console_answered = Answered
console_rejected = Rejected
console_failed = Failed
console_causes = Why requests were rejected or failed
console_rejected_apps = Rejected requests by application

## Sign Doctor

console_doctor = Sign Doctor
console_doctor_paste = A request that was rejected
console_doctor_by_id = A rejected request by its id
console_examine = Examine
console_find = Find
console_field_request = Request
    .hint = As it is sent, from its request line on; a command of curl or PowerShell, or output of curl -v; fetch(…); a HAR; or a URL.
console_field_app = Application
    .hint = Its ident, if the request does not name it.
console_field_canonical = The string that the client signs
    .hint = May be empty. The first difference is then shown.
console_field_version = Version
console_field_status = Status
console_field_request_id = Request id
    .hint = As X-Request-Id or the error says it.
console_rejection_gone = No gateway has this request any more, or none has rejected it. Paste the request instead.
console_rejection_params = Parameters, each with the bytes of its value
console_rejection_how = Values of parameters are not kept. To see each step, paste the request itself.
console_client_address = Client
console_backend = Backend
console_doctor_wrong = The gateway rejects this request.
console_doctor_right = The gateway accepts this request, as far as was checked.
console_doctor_old = Nothing is wrong with this request, but it is too old to be sent again.
console_step = A step of the gateway
    .request = Method, headers and the body's framing
    .callback = Provider's redirect, which needs no signature
    .app = Application
    .params = Form and parameters
    .time = Time
    .sign = Signature
    .route = Version and route
    .account = Account
console_doctor_params = Parameters in the order in which they are signed
console_doctor_sent = As sent
console_doctor_signed = Signed
console_yes = yes
console_no = no
console_doctor_canonical = The string to sign
console_doctor_difference = The client's string differs after { $at } bytes:
console_doctor_expected = Right
console_doctor_found = The client's
console_doctor_request = The right request, with the present time

## Live

console_live = Live
console_live_now = Requests as they come
console_live_script = Requests appear here in a browser that runs scripts.
console_live_on = This gateway's requests appear here as they end.
console_live_off = The connection is lost. The browser tries again.
console_live_ended = The gateway has ended the connection: the session is over, or too many pages are live. Reload the page.
console_live_missed = Many requests come: # of the last second are left out. A filter shows what you look for.
console_live_rejected = Rejected lately
console_rejections_none = No request was rejected since the gateway has started.
console_explain = Explain { $id }
console_all = all
console_request = Request
console_app = Application
console_status = Status
console_duration = ms
console_app_versions = Versions that it has called in the last 30 days
console_app_unused = It has called none.
