# Signpost が表示するすべての文言（日本語）。キーはどのファイルでも同じ。エラーコードがキー、値が見出し、`.detail` が対処。
# ページでは代わりに `.page-title` と `.page`：ブラウザーの利用者はリクエストの作成者ではない。`.developer` は `.detail` に代わる開発者向けの説明。いずれも引数はない。

## Errors

target_invalid = リクエスト先の形式が正しくありません
    .detail = { malformed }
    .about = リクエスト先は RFC 3986 のパスとクエリでなければならず、「%」の後には 16 進数 2 桁が必要です。有効な Host ヘッダーがちょうど 1 つ必要です。
    .page-title = { page_link_title }
    .page = { page_link_detail }
target_ambiguous = パスがあいまいです
    .detail = バックエンドがこのパスを別のパスと解釈する可能性があります。パスの { $position } バイト目は { $found } です。空のセグメント、「.」、「..」、「;」、「\」、エンコードされた「/」や制御文字を使わず、セグメントの末尾に「.」や空白を置かずに、UTF-8 で送信してください。
    .about = バックエンドがパスを別のパスと解釈する可能性があります。パスには空のセグメント、「.」、「..」、「;」、「\」、エンコードされた「/」や制御文字、末尾が「.」や空白のセグメントを含められず、UTF-8 でなければなりません。
    .page-title = { page_link_title }
    .page = { page_link_detail }
params_malformed = パラメーターの形式が正しくありません
    .detail = { malformed }
    .about = クエリまたはフォームに、壊れたパーセントエンコード、エンコードが必要な文字、または UTF-8 でないバイトがあります。
    .page-title = { page_link_title }
    .page = { page_link_detail }
malformed = { $fault ->
        [character] { malformed_place }: { $found } はそのままでは使えません。パーセントエンコードしてください。
        [escape] { malformed_place }: 「%」の後に 16 進数 2 桁がありません。
        [encoding] { malformed_place }: UTF-8 ではありません。
        [gbk] { malformed_place }: UTF-8 ではなく、GBK または GB18030 のようです。テキストは UTF-8 でエンコードしてください。
        [slash] リクエスト先は「/」で始まらなければなりません。スキームとホストは含めず、ホストは Host ヘッダーに書いてください。
        [hosts] Host ヘッダーはちょうど 1 つ必要です。
       *[other] リクエスト先、そのスキーム、または Host ヘッダーの形式が正しくありません。
    }
malformed_place = { $place ->
        [path] パスの { $position } バイト目
        [host] Host の { $position } バイト目
        [query] クエリの { $position } バイト目
        [query_parameter] クエリの { $position } バイト目、パラメーター「{ $name }」
        [form] フォームの { $position } バイト目
       *[form_parameter] フォームの { $position } バイト目、パラメーター「{ $name }」
    }
params_too_many = パラメーターが多すぎます
    .detail = 受け付けるパラメーターは { $limit } 個までです。
    .about = リクエストのパラメーターが上限（既定では 256 個）を超えています。
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_missing = パラメーターがありません
    .detail = パラメーター「{ $name }」が必要です。
    .about = 「detail」に示されたパラメーターが必要です。
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_invalid = パラメーターが無効です
    .detail = { $rule ->
        [once] パラメーター「{ $name }」は 1 回だけ指定できます。
        [only_one] 次のパラメーターは 1 つだけ指定できます: { $allowed }。
        [text] パラメーター「{ $name }」は { $allowed } バイトまでで、ヌル文字を含めることはできません。
       *[values] パラメーター「{ $name }」に指定できる値: { $allowed }。
    }
    .about = 「detail」に示されたパラメーターの値が許可されていないか、2 回指定されています。指定できる値は「detail」にあります。
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_duplicated = パラメーターが重複しています
    .detail = パラメーター「{ $name }」は 1 回だけ指定できます。
    .about = 「detail」に示されたパラメーターは 1 回だけ指定できます。該当するのは「time」、「sign」、ブラウザー用のパスの「app」、およびログインのコールバックのパラメーターです。
    .page-title = { page_link_title }
    .page = { page_link_detail }
header_duplicated = ヘッダーが重複しています
    .detail = ヘッダー { $name } は 1 回だけ指定できます。
    .about = 「detail」に示されたヘッダーは 1 回だけ指定できます。
    .page-title = リクエストが途中で書き換えられました
    .page = ブラウザーの拡張機能またはプロキシがリクエストを変更した可能性があります。それを無効にし、アプリケーションに戻ってやり直してください。
body_not_allowed = ここでは本文を送れません
    .detail = GET リクエストに本文はありません。パラメーターはクエリで送るか、POST を使ってください。
    .page-title = { page_link_title }
    .page = { page_link_detail }
app_missing = アプリケーションが指定されていません
    .detail = ヘッダー { $name } でアプリケーションの識別子を送ってください。
    .page-title = { page_link_title }
    .page = { page_link_detail }
    .developer = 署名に含めたクエリパラメーター「app」をリンクに付けてください。
version_contradictory = 二つのバージョンが指定されています
    .detail = パスまたはホストはバージョン { $placed } のものですが、リクエストは別のバージョンを求めています。一つだけ指定してください。
    .about = バージョンのヘッダー、ホスト、パスの先頭が別々のバージョンを示しています。一つだけ指定してください。
version_unknown = 存在しないバージョンです
    .detail = 使えるバージョン: { $versions }。
    .about = ヘッダーのバージョンは存在しません。使えるバージョンを「detail」に示します。
    .page-title = { page_link_title }
    .page = { page_link_detail }
time_invalid = 時刻が無効です
    .detail = 「time」は 1970 年からの UTC ミリ秒を 10 進数の数字で表したものでなければなりません。
    .page-title = { page_link_title }
    .page = { page_link_detail }
login_mismatch = このページは無効になりました
    .detail = ログインのページがもう一度、または別のブラウザーで開かれました。アプリケーションに戻り、一つのウィンドウだけで、もう一度始めてください。
authorization_missing = ログインしていません
    .detail = このリクエストには、ログインで得られる「authorization」をヘッダー { $name } に付ける必要があります。
    .page = アプリケーションに戻ってログインしてください。
authorization_invalid = ログインは無効になりました
    .detail = ヘッダー { $name } の認証情報は、不明、期限切れ、無効化済み、または別のアプリケーションのものです。もう一度ログインしてください。
    .page = もう一度ログインしてください。
authorization_malformed = 認証情報の形式が正しくありません
    .detail = ヘッダー { $name } には、ログインで得た「authorization」（base64url で 43 文字、前に「Bearer 」を付けてもよい）を指定します。よくある原因：値が途中で切れている、引用符が付いている、「Basic」を使っている、「Bearer」が二重になっている、「undefined」や「null」という文字列を送っている。
    .page = アプリケーションに戻って、もう一度ログインしてください。
time_missing = 時刻がありません
    .detail = パラメーターのあるリクエストには「time」（ミリ秒）と「sign」が必要です。
    .page-title = { page_link_title }
    .page = { page_link_detail }
time_out_of_window = 時刻のずれが大きすぎます
    .detail = 「time」とサーバーの時計の差は { $window } 秒までです。端末の時計を確認してください。
    .about = 「time」とサーバーの時計の差が大きすぎます。サーバーの時刻は「server_time」にミリ秒で示されます。それに合わせて時刻を補正し、署名し直してください。
    .page-title = リンクの有効期限が切れました
    .page = このリンクが使えるのは短い時間だけです。アプリケーションに戻って、もう一度始めてください。
    .developer = 署名付きリンクは開く直前に作成してください。それでも解決しない場合は時計を確認してください。
sign_missing = 署名がありません
    .detail = このリクエストには署名が必要です。「time」と「sign」を付けてください。
    .page-title = { page_link_title }
    .page = { page_link_detail }
sign_mismatch = 署名が一致しません
    .detail = 「sign」の値が、これらのパラメーターとこのアプリケーションの鍵に一致しません。
    .page-title = { page_link_title }
    .page = { page_link_detail }
prefetch_refused = ログインのページは先読みできません
    .detail = リクエストは先読みであると示していますが、ログインのアドレスは一度しか使えません。そのヘッダーのない同じリクエストは処理されます。
    .page = このページは、開いたときにだけ読み込まれます。戻って、リンクを開き直してください。
app_disabled = アプリケーションは無効になっています
    .detail = サービスの運用者に有効化を依頼してください。
    .page-title = このアプリケーションは現在利用できません
    .page = このアプリケーションへのログインは停止されています。アプリケーションの提供元にお問い合わせください。
login_denied = ログインは拒否されました
    .detail = プロバイダーでアクセスが許可されなかったか、ログインが取り消されたため、だれもログインしていません。ログインする場合は、アプリケーションに戻って、もう一度始めてください。
network_mismatch = このログインは別のネットワークで始められました
    .detail = ここでは、ログインを始めたネットワークでのみログインを確認できます。アプリケーションの端末とこのブラウザーを同じネットワークにつなぎ、アプリケーションに戻ってもう一度始めてください。ご自身で始めたログインでなければ、このページを閉じてください。
return_to_not_allowed = 戻り先が許可されていません
    .detail = 「return_to」は、アプリケーションに登録されたオリジンの http または https のアドレスで、フラグメント（「#」）を含まないものでなければなりません。
    .page-title = { page_link_title }
    .page = { page_link_detail }
gateway_required = ここで受け付けるのはゲートウェイからのリクエストだけです
    .detail = リクエストはゲートウェイのアドレスに送ってください。
    .page-title = { page_link_title }
    .page = { page_link_detail }
app_not_found = そのアプリケーションはありません
    .detail = アプリケーションの識別子を確認してください。
    .page-title = { page_link_title }
    .page = { page_link_detail }
    .developer = 署名に含めたクエリパラメーター「app」を確認してください。
not_found = そのエンドポイントはありません
    .detail = リクエストのパスを確認してください。
    .page-title = ページがありません
    .page = アプリケーションに戻ってやり直してください。
login_unknown = 該当するログインが見つかりません
    .detail = 始まっていないか、かなり前に終わったか、別のアプリケーションのものです。
    .page-title = このログインはもうありません
    .page = リンクが不完全か、ログインがかなり前に終わっています。アプリケーションに戻って、もう一度始めてください。
https_required = この呼び出しには https が必要です
    .detail = 署名、認証情報またはフォームが暗号化されずに送られたため、ネットワーク上の第三者に読まれた可能性があります。https のアドレスに送ってください。認証情報が含まれていた場合は、ユーザーをログアウトさせてから、ログインし直してください。
    .page-title = { page_link_title }
    .page = { page_link_detail }
upgrade_not_supported = プロトコルの切り替えには対応していません
    .detail = Upgrade ヘッダーが WebSocket など別のプロトコルを求めています。このゲートウェイは HTTP だけに対応しています。リクエストは転送されていません。
    .page-title = { page_link_title }
    .page = { page_link_detail }
method_not_allowed = そのメソッドは使えません
    .detail =
        { $scope ->
            [gateway] このゲートウェイで使えるメソッドは { $methods } だけです。
           *[path] このパスで使えるメソッドは { $methods } だけです。
        }
    .about = このパスではそのメソッドを使えません。使えるメソッドは「detail」と Allow ヘッダーにあります。
    .page-title = { page_link_title }
    .page = { page_link_detail }
request_timeout = リクエストに時間がかかりすぎました
    .detail = ヘッダーと本文は、それぞれ { $seconds } 秒以内に届く必要があります。
    .about = ヘッダーまたは本文が時間内に届きませんでした。リクエストは転送されていません。
    .page = リクエストの受信に時間がかかりすぎました。接続を確認してからやり直してください。
request_replayed = このリクエストは受信済みです
    .detail = リクエストごとに署名し直してください。署名は 1 回だけ有効です。
    .page-title = このリンクは使用済みです
    .page = このリンクは一度しか使えません。アプリケーションに戻って、もう一度始めてください。
    .developer = 署名は 1 回だけ有効です。
login_pending = ログインはまだ終わっていません
    .detail = 先にブラウザーで完了してください。
login_used = このログインは使用済みです
    .detail = このログインの結果はすでに確定しています。必要な場合は、新しくログインしてください。
    .page-title = このログインはすでに終了しています
    .page = 別のウィンドウなどで、すでに完了したか取り消されました。ログインできていない場合は、アプリケーションに戻って、もう一度始めてください。
idempotency_conflict = この冪等キーは使用済みです
    .detail = 内容の異なるものがこのキーで送信されています。新しいイベントやリクエストごとに新しいキーを使ってください。
version_retired = このバージョンは提供を終了しました
    .detail =
        { $scope ->
            [endpoint] 終了したのはこのパスだけで、バージョン全体ではありません。
           *[version] { "" }
        }{ $versions ->
            [none] 使うべきバージョンをサービスの運用者に確認してください。
           *[other] 次のいずれかに移行してください: { $versions }。
        }
    .about = このバージョンは提供を終了しました。「detail」が示すバージョンへ移行してください。
    .page-title = このアプリケーションは古くなっています
    .page = このアプリケーションが使っている古いサービスは、すでに提供を終了しました。アプリケーションの更新を確認してください。
login_expired = ログインの有効期限が切れました
    .detail = 時間がかかりすぎました。アプリケーションに戻って、もう一度始めてください。
body_too_large = 本文が大きすぎます
    .detail = 受け付けるのは { $limit } バイトまでです。
    .about = 本文が「detail」に示された上限を超えています。
    .page-title = { page_link_title }
    .page = { page_link_detail }
uri_too_long = クエリが長すぎます
    .detail = 受け付けるのは { $limit } バイトまでです。長い値は POST のフォームで送ってください。
    .about = クエリが「detail」に示された上限を超えています。長い値は POST のフォームで送ってください。
    .page-title = { page_link_title }
    .page = { page_link_detail }
content_type_unsupported = 対応していないコンテンツタイプです
    .detail =
        { $kind ->
            [api] 本文を { $allowed } で送信してください。
           *[form] 本文は UTF-8 の application/x-www-form-urlencoded とし、コンテンツエンコーディングは使わないでください。
        }
    .page-title = { page_link_title }
    .page = { page_link_detail }
rate_limited = リクエストが多すぎます
    .detail =
        { $limit ->
            [app] このアプリケーションのリクエスト数が上限に達しました。Retry-After ヘッダーの時間だけ待ってから、やり直してください。
            [address] このネットワークアドレスのリクエスト数が上限に達しました。Retry-After ヘッダーの時間だけ待ってから、やり直してください。
            [path] このパスへのリクエスト数が上限に達しました。Retry-After ヘッダーの時間だけ待ってから、やり直してください。
           *[other] Retry-After ヘッダーの時間だけ待ってから、やり直してください。
        }
    .page = 少し待ってからやり直してください。
headers_too_large = ヘッダーが大きすぎます
    .detail = リクエスト行とヘッダーは合わせて { $limit } バイトまで、ヘッダーは { $count } 個までです。
    .about = リクエスト行とヘッダーが「detail」に示された上限を超えています。
    .page-title = ブラウザーが送ったデータが多すぎます
    .page = このサイトの Cookie を削除してから、やり直してください。
internal = こちら側で問題が発生しました
    .detail = しばらくしてからやり直してください。続く場合はリクエスト ID をお知らせください。
backend_unreachable = サービスに接続できません
    .detail = 少し待ってからやり直してください。
bridge_failed = 2 つのバージョン間の変更を適用できません
    .detail = この呼び出しには変更 {$change} を適用できません。運用者に request_id を伝えてください。
    .about = 運用者が 2 つのバージョンの違いを定義していますが、その変更の 1 つをこの呼び出しに適用できません。運用者に request_id を伝えてください。
provider_failed = ログインプロバイダーでエラーが発生しました
    .detail = プロバイダーから使える応答がありませんでした。少し待ってから、新しくログインしてください。
    .page = だれもログインしていません。少し待ってから、アプリケーションに戻って、もう一度始めてください。
spool_full = 本文を置く場所がありません
    .detail = 少し待ってからやり直してください。
    .about = 大きな本文は検証が終わるまでフォルダーに置かれますが、そのフォルダーがいっぱいです。何も転送されていません。
no_healthy_backend = サービスは停止しています
    .detail = 少し待ってからやり直してください。
version_brownout = 一時的に停止中のバージョンです
    .detail =
        { $scope ->
            [endpoint] 対象はこのパスだけで、バージョン全体ではありません。
           *[version] { "" }
        }{ $versions ->
            [none] このバージョンは提供を終了する予定です。それまでは、Retry-After ヘッダーの時間が過ぎてから再試行してください。
           *[other] このバージョンは提供を終了する予定です。次のいずれかに移行してください: { $versions }。それまでは、Retry-After ヘッダーの時間が過ぎてから再試行してください。
        }
    .about = このバージョンは提供を終了する予定で、クライアントが気付けるように一時的に停止しています。「detail」が示すバージョンへ移行してください。それまでは、Retry-After ヘッダーの時間が過ぎてから再試行してください。
    .page-title = 現在は利用できません
    .page = このアプリケーションが使っている古いサービスは、まもなく提供を終了するため、一時的に停止しています。アプリケーションの更新を確認するか、後でもう一度お試しください。
store_unavailable = サービスは一時的に利用できません
    .detail = データベースに接続できません。少し待ってからやり直してください。
    .page = 少し待ってからやり直してください。
backend_timeout = サービスが時間内に応答しませんでした
    .detail = 少し待ってからやり直してください。
gateway_stopping = サービスを再起動しています
    .detail = リクエストは実行された可能性があります。確認してから、もう一度送信してください。
    .page = アプリケーションに戻り、ログインできているか確認してください。できていない場合は、もう一度始めてください。
provider_timeout = ログインプロバイダーが時間内に応答しませんでした
    .detail = だれもログインしていません。少し待ってから、アプリケーションに戻って、もう一度始めてください。

## Management API

request_malformed = リクエストを読み取れません
    .detail = { $problem }
nothing_to_change = 変更する内容がありません
    .detail = 設定を少なくとも 1 つ指定してください。
token_missing = トークンが必要です
    .detail = Authorization: Bearer ヘッダーでトークンを送信してください。コマンド "signpost token create" で作成できます。
token_invalid = トークンが無効です
    .detail = トークンが不明か、有効期限切れか、取り消されています。管理者に新しいトークンを依頼してください。
account_not_found = そのアカウントはありません
    .detail = provider と username を確認してください。アカウントは、ユーザーが一度ログインすると作成されます。
token_not_found = そのトークンはありません
    .detail = トークンの番号を確認してください。
token_taken = 同じ名前のトークンがあります
    .detail = 別の名前を選ぶか、先にそのトークンを取り消してください。
role_insufficient = トークンのロールではこの操作は許可されません
    .detail = トークンのロールは { $role } です。この呼び出しには { $needed } が必要です。
cross_site = 他のサイトのページからは呼び出せません
    .detail = プログラムか、このアドレスのページから呼び出してください。
app_taken = この識別子のアプリケーションがあります
    .detail = 何も変更されていません。別の識別子を選んでください。
overlap_running = 前の鍵がまだ有効です
    .detail = あと { $minutes } 分間有効です。待つか、end-overlap で有効期間を終了してください。
not_drained = ドレインされていません
    .detail = バックエンドのこのアドレスは運用者によってドレインされていないか、すでにその期間が終わっています。
revision_stale = その間に変更されました
    .detail = 何も変更されていません。現在のリビジョンは { $revision } です。読み直してから判断してください。
revision_missing = 変更にリビジョンがありません
    .detail = 読み取ったリビジョンを If-Match ヘッダーまたは本文の "revision" で送信してください。
import_invalid = ファイルに問題があります
    .detail = 何もインポートされていません。"problems" に行ごとの問題があります。
config_invalid = 設定ファイルに問題があります
    .detail = 何も変更されていません。"problems" に問題の一覧があります。
report_too_large = レポートが大きすぎます
    .detail = アプリケーションが多すぎて 1 つの応答に収まりません。ゲートウェイのマシンで "signpost versions report" コマンドを使用してください。
idempotency_unfinished = 最初のリクエストの結果が不明です
    .detail = この冪等キーのリクエストは実行中か、中断されました。変更されるはずだった内容を確認し、新しいキーを送信してください。
address_not_found = そのアドレスはありません
    .detail = この名前のバックエンドにこのアドレスはありません。
last_address = バックエンドの最後のアドレスです
    .detail = 何も変更されていません。これがないとバックエンドは利用できません。それでよければ "force" を送信してください。

## Hints

hint_seconds = 秒ではありませんか。「time」の単位はミリ秒です。
hint_microseconds = マイクロ秒ではありませんか。「time」の単位はミリ秒です。
hint_nanoseconds = ナノ秒ではありませんか。「time」の単位はミリ秒です（例：1732104000000）。
hint_time_fraction = 「time」が小数または指数表記です。整数のミリ秒を送ってください（例：1732104000000）。
hint_time_quoted = 「time」の前後に引用符か空白があります。数字だけを送ってください（例：1732104000000）。
hint_time_text = 「time」が日付の文字列です。1970-01-01 00:00 UTC からのミリ秒を数字で送ってください（例：1732104000000）。
hint_local_time = 「time」とゲートウェイの時計の差は { $offset } です。現地時刻を UTC として、または UTC を現地時刻として扱っていませんか。1970-01-01 00:00 UTC からのミリ秒を送ってください。
hint_not_searched = 原因は調べられていません。この 1 秒間の誤った署名が多すぎます。1 秒後にもう一度お試しください。
hint_too_large = 原因は調べられていません。パスとパラメーターが 8 KiB を超えています。同じプログラムで小さいリクエストを送ると、原因がわかります。
hint_unsorted = 署名の前にパラメーター名の順に並べ替えられていません。
hint_empty_dropped = 値が空のパラメーターが省かれています。このアプリケーションの規則では、それらにも署名します。
hint_empty_kept = 値が空のパラメーターが署名に含まれています。このアプリケーションの規則では、それらを省きます。
hint_decoded = デコードした値に署名しています。このアプリケーションでは、名前と値に送信する文字列のまま署名します。
hint_encoded = 送信する形のまま、またはパーセントエンコードした値に署名しています。このアプリケーションでは、デコードした値に署名します。リクエストの「+」は空白です。プラス記号は「%2B」として送ってください。
hint_key_labelled = 鍵の前に「&key=」が付いています。{ $found } ではなく { $rule } の形につないでください。
hint_key_not_labelled = 鍵の前に「&key=」がありません。{ $found } ではなく { $rule } の形につないでください。
hint_key_in_front = 鍵が先頭に置かれています。{ $found } ではなく { $rule } の形につないでください。
hint_layout = 名前と値と鍵を { $found } の形につないでいます。このアプリケーションでは { $rule } の形につなぎます。
hint_trailing_newline = 署名対象の文字列または鍵の末尾に改行があります。ファイルから読み込んだ鍵などの改行を取り除いてください。
hint_escape_case = パーセントエンコードの大文字と小文字が、送信時と署名時で異なります。送信する文字列のまま署名してください。
hint_cover = { $found ->
    [request] 署名した文字列にメソッドとパスがありません。このアプリケーションの規則では、パラメーターの前にメソッド、改行（LF）、パス、改行（LF）を置きます（cover = request）。
    [address] 署名した文字列にアドレスまたはパスがあります。このアプリケーションの規則では、メソッド、スキーム、ホスト、パス、「?」を除き、パラメーターだけに署名します（cover = parameters）。
   *[parameters] 署名した文字列にメソッドとパスがあります。このアプリケーションの規則では、パラメーターだけに署名します（cover = parameters）。
}
hint_algorithm = { $found ->
    [none] このアプリケーションは { $rule }（16 進数 { $digits } 桁）を使います。リクエストの「sign」の長さは別のアルゴリズムのものです。
   *[other] リクエストは { $found } で署名されました。このアプリケーションは { $rule } を使います。
}
hint_hmac_hash = リクエストは { $found } で署名されました。このアプリケーションは { $rule } を使います。
hint_time_not_signed = 「time」が署名に含まれていません。ほかのパラメーターと同じように署名してください。
hint_space_as_escape = 空白を「+」で送り、「%20」として署名しています。送信する文字列のまま署名してください。
hint_space_as_plus = 空白を「%20」で送り、「+」として署名しています。送信する文字列のまま署名してください。
hint_query_left_out = クエリのパラメーターが署名に含まれていません。クエリとフォームのパラメーターを合わせて署名してください。
hint_preset = プリセット「{ $preset }」の規則で署名されていますが、このアプリケーションのプリセットではありません。{ $preset ->
    [decoded] そのプリセットでは、デコードした値に署名します。
    [alipay] そのプリセットでは、デコードした値に署名し、空の値と「sign_type」を省きます。
    [wechat] そのプリセットでは、デコードした値に署名し、空の値を省き、鍵の前に「&key=」を置きます。
    [top] そのプリセットでは、デコードした値に署名し、空の値を省き、KEYa1b2KEY の形につなぎます。
   *[other] {""}
}
hint_previous_key = 以前の鍵で署名されていますが、その鍵はもう無効です。
hint_encoded_differently = パラメーター「{ $key }」では、「{ $signed }」に署名し、「{ $sent }」を送信しています。エンコードは一度だけ行い、送信する内容そのものに署名してください。{ $form ->
    [raw] 署名した形は、エンコードしていないか、{ $function } のような関数のものです。
   *[encoded] 別々の関数でエンコードされています（署名した形は、たとえば { $function } のものです）。
}
hint_encoded_twice = リクエストと署名した文字列は、パーセントエンコード 1 回分だけ異なります。どちらかで値が二重にエンコードされているようです。エンコードは一度だけ行い、送信する内容そのものに署名してください。
hint_order = デコード後の名前をバイト単位の昇順で並べ、同じ名前のものは送信する順序のままにしてください。{ $found ->
    [value-too] 同じ名前のパラメーターが値の順にも並べ替えられています。
    [pair] パラメーターが「=」と値も含めた全体で並べ替えられています。
    [value] パラメーターが値の順に並べ替えられています。
    [ignoring-case] パラメーターが大文字と小文字を区別せずに並べ替えられています。
    [descending] パラメーターが降順に並べ替えられています。
   *[utf-16] パラメーターが UTF-16 の順に並べ替えられています。
}
hint_key_missing = 署名した文字列に鍵がありません。このアプリケーションの規則に従って鍵を加えてください。
hint_key_in_text = 署名した文字列に鍵が含まれています。{ $found } ではなく { $rule } の形につないでください。このアプリケーションの HMAC では、鍵はハッシュ関数の鍵としてのみ使います。
hint_key_form = 発行された鍵の文字列のバイトをそのまま使ってください。{ $found ->
    [hex] 鍵が 16 進数としてデコードされています。
    [base64] 鍵が base64 としてデコードされています。
    [case] 鍵の大文字と小文字が変更されています。
    [quotes] 鍵が引用符で囲まれています。
    [bom] 鍵の前に BOM があります。
    [cut] 鍵の一部が欠けています。
    [unread] プレースホルダーや、「undefined」のような読み込めなかった値が鍵として使われています。
    [swapped] HMAC の鍵と文字列が逆になっています。
   *[space] 鍵の前または後ろに空白があります。
}
hint_stray_separator = 署名対象の文字列で、パラメーターの前に余分な「?」か「&」、または後ろに余分な「&」があります。
hint_cover_form = メソッドとパスの署名の形が、このアプリケーションの規則と異なります。パラメーターの前に、大文字のメソッド、改行（LF）、送信するままのパス（スキーム、ホスト、クエリを除く）、改行（LF）を置いてください。
hint_sign_form = { $found ->
    [base64] 「sign」が base64 の形をしています。このアプリケーションは { $rule } を 16 進数 { $digits } 桁で使います。
    [cut] 「sign」が 16 進数 16 桁で、切り詰めた MD5 のようです。このアプリケーションは { $rule } を 16 進数 { $digits } 桁で使います。
    [around] 「sign」の 16 進数の前後や間に、md5sum の出力やハイフンなど、ほかの文字があります。このアプリケーションは { $rule } を 16 進数 { $digits } 桁だけで使います。
    [short] 「sign」の 16 進数の桁が足りません。ハッシュ値を数値として出力した場合や、1 バイトを 1 桁で書いた場合のように、0 が失われています。1 バイトを必ず 2 桁で書いてください。このアプリケーションは { $rule } を 16 進数 { $digits } 桁で使います。
   *[other] 「sign」がハッシュ値の 16 進表記ではありません。このアプリケーションは { $rule } を 16 進数 { $digits } 桁で使います。
}
hint_param_signed = パラメーター「{ $key }」に署名しています。このアプリケーションの規則では除外します。
hint_param_not_signed = パラメーター「{ $key }」に署名していません。このアプリケーションの規則では、ほかと同じように署名します。
hint_json = パラメーターを JSON として署名しています。送信する組を、このアプリケーションの規則でつないで署名してください。
hint_key_or_value = よくある間違いでは、この署名を説明できません。プログラムが署名した文字列を、送信したバイト列、およびこのレスポンスの「canonical」または「signpost sign --canonical」が示す文字列と比べてください。次に、どのアプリケーションの鍵を使っているかを確かめてください。
hint_version_in_path = バージョンはパスに含めません。パス「{ $path }」に、ヘッダー「{ $name }: { $version }」を付けて送ってください。
hint_missing_value = 値がないパラメーターを「{ $found }」として署名し、「{ $rule }」として送信しています。そのようなパラメーターは省くか、送信する内容そのものに署名してください。
hint_value_changed = 値は一度だけ作り、送信する内容そのものに署名してください。{ $found ->
    [trimmed] 名前または値の前後の空白が、送信されていますが署名に含まれていません。
    [html] 「&」を表す「&amp;」のような HTML の文字参照が、署名した文字列とリクエストの片方にだけあります。
    [unicode] 署名した文字列と送信した内容は、文字は同じですが Unicode の正規化形式（NFC と NFD など）が異なります。
    [number] 数値が、署名と送信とで異なる形で書かれています（例：「1.0」と「1」）。
    [boolean] 真偽値が、署名と送信とで異なる形で書かれています（例：「True」や「1」と「true」）。
    [brackets] 送信した名前の角括弧が、署名では省かれています（例：「tag[0]」と「tag」）。
    [lines] 改行が、署名と送信とで異なります（LF だけ、または CR と LF）。
    [json] 値の JSON が二度作られ、書き方（空白や「\/」）が異なります。
    [once] 同じ名前の複数のパラメーターのうち 1 つだけに署名しています。マップや辞書には 1 つしか残りません。
    [joined] 同じ名前の複数のパラメーターを、コンマでつないで 1 つとして署名しています。
    [text] ハッシュする前に、文字列全体が小文字または大文字に変えられています。大文字と小文字のどちらでもよいのは「sign」の 16 進数だけです。
    [time] 送信したものと異なる「time」に署名しています（数ミリ秒の差、または秒単位）。時計はリクエストごとに一度だけ読んでください。
    [nothing] どのパラメーターも署名に含まれていません。パラメーターを設定する前に、または読み終えたボディから文字列を作った可能性があります。
    [spaces] 署名の前に、名前と値から空白が取り除かれています。
   *[letters] 名前と値が、署名では小文字または大文字に変えられ、送信と異なります。
}
hint_form_left_out = フォームのパラメーターが署名に含まれていません。クエリとフォームのパラメーターを合わせて署名してください。
hint_key_sent = 鍵そのものが送信されました。鍵はもうアドレスかフォームに含まれ、ログにも残っている可能性があります。鍵を交換してください。鍵は署名にだけ使い、決して送信しません。
hint_body_unsigned = パラメーターの署名はこの本文を含みません。ヘッダーで署名してください。時刻、署名、必要ならノンスです。
hint_headers_missing = このリクエストはヘッダーで署名します。時刻は「…-X-Time」、署名は「…-X-Sign」です。
hint_in_parameters = 「{ $found }」がパラメーターとして送信されました。このアプリケーションはヘッダーで署名します。
hint_line = { $found ->
    [method] メソッドの大文字と小文字が異なる形で署名されました。
    [path] 署名した対象にクエリがありません。送信したとおりのパスとクエリです。
    [address] 署名した対象にスキームまたはホストがあります。送信したとおりのパスとクエリです。
    [empty] 空の本文のハッシュが署名されました。
    [digits] 本文のハッシュが小文字の 16 進数 64 桁で署名されていません。
    [body] 本文そのものが署名されました。最後の行は本文の SHA-256 の 16 進数です。
    [nonce] ノンスの行がありません。ノンスがなければ空の行です。
   *[key] 鍵の行が異なります。md5 では文字列の最後に鍵があり、hmac-sha256 ではありません。
}
hint_in_header = 「{ $found }」がヘッダーとして送信されました。「time」と「sign」は、クエリまたはフォームのパラメーターとして送ってください。
hint_misnamed = 「{ $key }」というパラメーターが送信されました。名前は小文字の「time」と「sign」そのものです。前に「amp;」がある場合は、アドレスの「&」が「&amp;」になっています。
hint_app_empty = 識別子が空です。プログラムが設定を読み込めているか確認してください。
hint_app_key = 識別子として送信されたものは、鍵または認証情報のようです。そこには識別子を送ってください。鍵は署名にだけ使い、決して送信しません。それがあなたの鍵なら、ログに残っている可能性があるため、交換してください。
hint_app_unread = プレースホルダーや、「undefined」のような読み込めなかった値が、識別子として送信されました。プログラムが設定を読み込めているか確認してください。
hint_app_character = 識別子に使えない文字があります。使えるのは A-Z、a-z、0-9、「.」、「_」、「-」だけです。よくある原因は、引用符、空白、プレースホルダーの括弧、または識別子の代わりにアプリケーションの名前を送ることです。
hint_app_length = 生成された識別子は 24 文字で、どの識別子も 64 文字以内ですが、これは短すぎるか長すぎます。全体をコピーしましたか。
hint_app_unknown = 識別子の形は正しいですが、このゲートウェイにそのアプリケーションはありません。大文字と小文字は区別されます。別の環境の識別子ではありませんか。
hint_app_in_query = パラメーター「app」がアプリケーションを表すのは、ブラウザー用のパスだけです。識別子はヘッダーで送ってください。
hint_path = 「{ $path }」ではありませんか。パスでは大文字と小文字、スラッシュ、拡張子が区別され、前に何も付きません。
hint_charset = 名前または値に ASCII 以外の文字があります。署名にも送信にも、GBK などではなく UTF-8 を使ってください。
hint_cover_rule = このアプリケーションでは、パラメーターの前に、大文字のメソッド、改行（LF）、送信するままのパス（スキーム、ホスト、クエリを除く）、改行（LF）も署名に含めます。

## Sign Doctor

doctor_old = このリクエストは { $what } 前のものです。いま送ると期限切れとして拒否されますが、誤りには数えません。作成した直後であれば、クライアントの時計が遅れています。
doctor_other_app = リクエストのアプリケーションは、別に指定された { $what } と異なります。
doctor_completed = 行に復帰文字（CR）がありません。行末、最後の空行、不足している Content-Length を補いました。
doctor_http2 = HTTP/2 または HTTP/3 のリクエストなので、同じ内容の HTTP/1.1 のリクエストとして調べました。
doctor_host = リクエストの送信先のホストが不明なため、public_url のホストを使いました。
doctor_unread = 次の部分は読み取っていません：{ $what }
doctor_left = リクエストの後に { $what } バイトが続いています。Content-Length またはチャンクによるとリクエストの一部ではないため、ゲートウェイは次のリクエストとみなします。
doctor_body = 本文が貼り付けられていません。そのため、フォーム、パラメーター、署名とそれ以降は確認していません。
doctor_not_http = RFC 9112 の HTTP ではないため、ゲートウェイは本文のない 400 を返します：{ $what }。
doctor_unreached = この後の手順は確認していません。
doctor_credential = 認証情報は確認していません。
doctor_unchecked = 確認していないもの：リクエストの繰り返し、レート制限、TLS と https へのリダイレクト、ゲートウェイの手前のプロキシ、バックエンド。

## Pages and login

page_confirm_title = { $application } にログイン
page_confirm_compare = 次の照合コードが、{ $application } に表示されているものと同じか確かめてください。
page_confirm_code = 照合コード
page_confirm_warning = ご自身で始めたログインで、両方の照合コードが一致する場合にのみ進んでください。
page_confirm_begun = このログインは { $minutes } 分前にネットワーク { $network } で始められました。
page_confirm_network = お使いのブラウザーは別のネットワークにあります。{ $application } がサーバーで動作している場合や、別の回線を使っている場合は、これで正常です。ご自身で始めたログインでなければ、取り消してください。
page_confirm_button = 照合コードは一致しています: { $provider } でログイン
page_confirm_cancel = 身に覚えがないログインを取り消す
page_choose_button = { $provider } でログイン
page_again_title = ログインプロバイダーは現在利用できません
page_again_wait = このログインはまだ有効です。少し待ってから、やり直してください。
page_again_button = やり直す
page_cancelled_title = ログインを取り消しました
page_cancelled_close = だれもログインしていません。このウィンドウを閉じてください。
page_late_title = このログインはすでに完了しています
page_late_warning = 取り消すことはできません。ご自身で始めたログインでない場合は、第三者があなたの名前で { $application } にログインしている可能性があります。すぐに { $application } へ連絡してください。
page_done_title = ログインしました
page_done_close = このウィンドウを閉じて { $application } に戻ることができます。
page_finishing_title = ログインを処理しています
page_finishing_wait = このままお待ちください。数秒後に自動的に次の画面へ進みます。
page_finished_title = このログインは完了しています
page_finished_link = { $application } に戻る
page_link_title = このリンクは使えません
page_link_detail = アプリケーションが作成したリンクを、このサービスでは受け付けられません。アプリケーションに戻って、もう一度始めてください。それでも解決しない場合は、以下の情報をアプリケーションの提供元に伝えてください。
page_problem_code = エラーコード
page_problem_status = HTTP ステータス
page_problem_retry = 再試行は有効か
    .no = いいえ。同じリクエストは再び失敗します。
    .yes = はい。応答に Retry-After ヘッダーがある場合は、先にその時間だけ待ってください。リクエストごとに現在の「time」で署名し直してください。
    .new-login = 新しいログインが必要です。
    .log-in = ユーザーのログイン後であれば有効です。
page_problem_request = リクエスト ID
page_problem_developer = アプリケーションの開発者の方へ
page_problem_link = 詳しい情報

## Retirement of a version

retire_used = 過去 { $days } 日間のリクエスト: { $number } 件
retire_last_used = 最終 { $at }
retire_users = アプリケーション: { $number } 個（{ $list }）
retire_extended = 利用期間が延長されたアプリケーション: { $number } 個、最長 { $at } まで
retire_used_lately = 過去 { $days } 日間にリクエストを送ったアプリケーション: { $number } 個。今後は 410 を受け取ります。
retire_default = デフォルトのバージョンです。
retire_pinned = このバージョンをデフォルトとするアプリケーション: { $number } 個
retire_paths = メソッドとパス: { $number } 個（{ $list }）
retire_ending_paths = 個別の日付を持つパス: { $list }
retire_compared = { $to } との応答の組: { $pairs } 件、パス: { $paths } 個、うち相違あり: { $differing } 個
retire_no_proof = 証明になっていません: { $command }
retire_proven = クライアントが使ったパス: { $number } 個、うち証明済み: { $proven } 個
retire_unpaired = 組のないリクエスト: { $list }
retire_few_pairs = 組が足りないリクエスト: { $list }
retire_unproven = 未証明: { $request }（リクエスト { $number } 件）: { $reason }
retire_unprovable = 使われていますが、ブリッジも、変更を適用するシャドウもありません。
retire_bridged = { $to } へのブリッジ、リクエスト: { $number } 件
retire_not_bridged = ブリッジなし
retire_own_backend = まだこのバージョンのバックエンドが応答しています。bridge に置き換えてください。
retire_brownouts = 終了した一時停止: { $number } 回
retire_brownouts_ahead = 今後の一時停止: { $number } 回（{ $list }）
retire_no_brownout = 終了した一時停止がありません。
retire_served = リクエストにはこのバージョンのバックエンドが応答します
retire_served_by_bridge = リクエストには { $to } のバックエンドが応答します
retire_until = { $at } 以降は 410 version_retired で拒否されます
retire_no_end = 終了日時はありません
retire_no_sunset = 終了予定日がありません。
retire_other_sunset = 終了予定日は { $at } です。クライアントにはこの日付だけが伝えられています。
retire_not_deprecated = まだ非推奨ではありません。
retire_more = { $list }、ほか { $number } 件
