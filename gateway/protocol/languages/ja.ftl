# Signpost が表示するすべての文言（日本語）。キーはどのファイルでも同じ。エラーコードがキー、値が見出し、`.detail` が対処。

## Errors

target_invalid = リクエスト先の形式が正しくありません
    .detail = リクエスト先は RFC 3986 のパスとクエリでなければならず、「%」の後には 16 進数 2 桁が必要です。有効な Host がちょうど 1 つ必要です。
params_malformed = パラメーターの形式が正しくありません
    .detail = クエリまたはフォームに、壊れたパーセントエンコード、エンコードが必要な文字、または UTF-8 でないバイトがあります。
params_too_many = パラメーターが多すぎます
    .detail = 受け付けるパラメーターは { $limit } 個までです。
param_missing = パラメーターがありません
    .detail = パラメーター「{ $name }」が必要です。
param_invalid = パラメーターが無効です
    .detail = パラメーター「{ $name }」に指定できる値: { $allowed }。
param_duplicated = パラメーターが重複しています
    .detail = パラメーター「{ $name }」は 1 回だけ指定できます。
header_duplicated = ヘッダーが重複しています
    .detail = ヘッダー「{ $name }」は 1 回だけ指定できます。
body_not_allowed = ここでは本文を送れません
    .detail = GET リクエストに本文はありません。パラメーターはクエリで送るか、POST を使ってください。
app_missing = アプリケーションの指定がありません
    .detail = ヘッダー「{ $name }」でアプリケーションを指定してください。
version_unknown = そのバージョンはありません
    .detail = 使えるバージョン: { $versions }。
time_invalid = 時刻が無効です
    .detail = 「time」は 1970 年からの UTC ミリ秒を 10 進数字で表したものでなければなりません。
login_mismatch = このログインは別のブラウザーのものです
    .detail = ログインを始めた、または確認したブラウザーで続けるか、新しく始めてください。
authorization_missing = ログインしていません
    .detail = このリクエストにはログインで得られる認証情報が必要です。
authorization_invalid = ログインは無効になりました
    .detail = もう一度ログインしてください。
time_missing = 時刻がありません
    .detail = パラメーターのあるリクエストには「time」（ミリ秒）と「sign」が必要です。
time_out_of_window = 時刻のずれが大きすぎます
    .detail = 「time」とサーバーの時計の差は { $window } 秒までです。端末の時計を確認してください。
sign_missing = 署名がありません
    .detail = このリクエストには署名が必要です。「time」と「sign」を付けてください。
sign_mismatch = 署名が一致しません
    .detail = 署名が、これらのパラメーターとアプリケーションの鍵から作られるものと異なります。
app_disabled = アプリケーションは無効になっています
    .detail = サービスの運用者に有効化を依頼してください。
login_denied = ログインは拒否されました
    .detail = プロバイダーでログインが許可されませんでした。やり直すことができます。
return_to_not_allowed = 戻り先が許可されていません
    .detail = 「return_to」は、アプリケーションに登録されたオリジンの http または https のアドレスでなければなりません。
gateway_required = ゲートウェイだけが呼び出せます
    .detail = リクエストはゲートウェイのアドレスに送ってください。
app_not_found = そのアプリケーションはありません
    .detail = アプリケーションの識別子を確認してください。
not_found = ここには何もありません
    .detail = パスを確認してください。
login_unknown = そのログインはありません
    .detail = 始まっていないか、とうに終わったか、別のアプリケーションのものです。
method_not_allowed = そのメソッドは使えません
    .detail = Allow ヘッダーにあるメソッドを使ってください。
request_timeout = リクエストに時間がかかりすぎました
    .detail = リクエスト全体が { $seconds } 秒以内に届く必要があります。
request_replayed = このリクエストは受付済みです
    .detail = リクエストごとに署名し直してください。署名は 1 回だけ有効です。
login_pending = ログインはまだ終わっていません
    .detail = 先にブラウザーで完了してください。
login_used = このログインは使用済みです
    .detail = 結果は変わりません。必要なら新しく始めてください。
version_retired = このバージョンは提供を終了しました
    .detail = 次のいずれかに移行してください: { $versions }。
login_expired = ログインの有効期限が切れました
    .detail = 時間がかかりすぎました。新しく始めてください。
body_too_large = 本文が大きすぎます
    .detail = 受け付けるのは { $limit } バイトまでです。
uri_too_long = クエリが長すぎます
    .detail = 受け付けるのは { $limit } バイトまでです。長い値は POST のフォームで送ってください。
content_type_unsupported = 対応していないコンテンツタイプです
    .detail = 本文は UTF-8 の application/x-www-form-urlencoded とし、コンテンツエンコーディングは使わないでください。
rate_limited = リクエストが多すぎます
    .detail = Retry-After ヘッダーの時間だけ待ってから、やり直してください。
headers_too_large = ヘッダーが大きすぎます
    .detail = リクエストのヘッダー部は { $limit } バイト、{ $count } 個までです。
internal = こちら側で問題が発生しました
    .detail = しばらくしてからやり直してください。続く場合はリクエスト ID をお知らせください。
backend_unreachable = サービスに接続できません
    .detail = 少し待ってからやり直してください。
provider_failed = ログインプロバイダーでエラーが発生しました
    .detail = プロバイダーから使える応答がありませんでした。少し待ってからやり直してください。
no_healthy_backend = サービスは停止しています
    .detail = 少し待ってからやり直してください。
store_unavailable = サービスは一時的に利用できません
    .detail = ストアに接続できません。少し待ってからやり直してください。
backend_timeout = サービスが時間内に応答しませんでした
    .detail = 少し待ってからやり直してください。
provider_timeout = ログインプロバイダーが時間内に応答しませんでした
    .detail = 少し待ってからやり直してください。

## Hints

hint_seconds = 秒ではありませんか。「time」の単位はミリ秒です。
hint_unsorted = 署名の前にキー順に並べ替えられていません。
hint_empty_dropped = 値が空のパラメーターが省かれています。それらも署名に含めます。
hint_empty_kept = 値が空のパラメーターが署名に含まれています。それらは省きます。
hint_decoded = デコードした値に署名しています。キーと値は送るとおりのまま署名します。
hint_encoded = パーセントエンコードした値に署名しています。デコードした値に署名します。
hint_key_labelled = 鍵の前に「&key=」が付いています。鍵をそのまま付け加えます。
hint_key_not_labelled = 鍵の前に「&key=」がありません。
hint_key_in_front = 鍵が先頭に置かれています。末尾に付け加えます。
hint_layout = キーと値のつなぎ方が、このアプリケーションの署名規則と異なります。
hint_trailing_newline = 末尾の改行まで署名に含まれています。
hint_escape_case = パーセントエンコードの大文字と小文字が、送信時と署名時で異なります。
hint_cover = 署名した文字列にメソッドとパスが欠けているか、余分に含まれています。
hint_algorithm = このアプリケーションの署名規則とは別のハッシュアルゴリズムが使われています。
hint_preset = プリセット「{ $preset }」の規則で署名されていますが、このアプリケーションのものではありません。
hint_previous_key = 以前の鍵で署名されていますが、その鍵はもう無効です。

## Pages and login

page_confirm_title = { $application } にログイン
page_confirm_compare = このコードが { $application } に表示されているコードと同じか確認してください。
page_confirm_code = コード
page_confirm_warning = ご自身で始めたログインで、両方のコードが一致する場合にのみ進んでください。このアドレスが他の人から送られてきた場合は、ウィンドウを閉じてください。
page_confirm_button = コードは一致しています：{ $provider } でログイン
page_done_title = ログインしました
page_done_close = このウィンドウを閉じて { $application } に戻ってください。
page_problem_code = コード
page_problem_request = リクエスト
