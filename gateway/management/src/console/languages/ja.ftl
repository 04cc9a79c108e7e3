# コンソールの文言（日本語）。API の語（状態など）は、その語を名前とする属性。

## The frame

console_skip = 本文へ移動
console_navigation = コンソールのメニュー
console_overview = 概要
console_apps = アプリケーション
console_versions = バージョン
console_audit = 監査
console_settings = 設定
console_sign_out = ログアウト
console_problem_code = エラーコード
console_problem_request = リクエスト ID
console_problem_back = 概要に戻る
console_next_page = 次のページ
console_copy = コピー
console_copied = コピーしました
console_done = 完了
    .signed-out = ログアウトしました。
    .session-ended = トークンは有効期限が切れたか、取り消されました。もう一度ログインしてください。
    .app-update = アプリケーションを変更しました。
    .app-end-overlap = 前の鍵は無効になりました。
    .app-enable = アプリケーションのリクエストは再び受け付けられます。
    .app-disable = アプリケーションのリクエストは今後拒否されます。
    .app-delete = アプリケーションを削除しました。
    .drain = このアドレスに新しいリクエストは送られません。
    .undrain = このアドレスに再びリクエストが送られます。
    .reloaded = 設定を再読み込みしました。
    .token-revoked = トークンを取り消しました。すべてのゲートウェイがこのトークンを拒否します。

## Sign in

console_sign_in = ログイン
console_sign_in_how = 管理 API のトークンでログインしてください。トークンは管理者に作成してもらうか、ゲートウェイのマシンで次のコマンドを実行して作成してください。
console_sign_in_button = ログイン
console_sign_in_account = アカウントでサインイン
console_account_failed = サインインに失敗したか、確認されませんでした。最初からやり直してください。
console_account_other_browser = このサインインは別のブラウザーで始められたか、時間が経ちすぎています。最初からやり直してください。
console_account_busy = 現在多くの人がサインインしています。数秒後にやり直してください。
console_account_no_app = コンソールのログインに使うアプリケーションが存在しないか、無効です。ゲートウェイのファイルの management.console.application を確認してください。
console_account_unknown = { $provider } のアカウント { $username } はサインインできません。管理者は、ゲートウェイのファイルの management.console.accounts で許可できます。

## Overview

console_attention = 注意が必要な項目
console_attention_none = ありません。すべてのゲートウェイの準備が完了し、すべてのアドレスにリクエストが送られています。
console_attention_brownout = バージョン { $version } は一時停止中です。リクエストは現在拒否されます。
console_attention_address = バックエンド { $backend } のアドレス { $address }: { $health }
console_attention_readiness = { $host } のゲートウェイからの報告: { $readiness }
console_attention_differs = { $host } のゲートウェイの設定が、ほかのゲートウェイと異なります。異なるキー: { $keys }
console_attention_reload = { $host } のゲートウェイが、直近の設定の再読み込みを拒否しました。
console_gateways = ゲートウェイ
console_last_changes = 最近の変更
console_all_changes = このアプリケーションのすべての変更
console_host = ホスト
console_ready = 状態
console_release = リリース
console_started = 起動日時
console_configuration = 設定内容
console_certificates = 証明書
console_readiness = ゲートウェイの状態
    .ready = 準備完了
    .not-ready = 準備未完了
    .gone = オフライン
    .differs = 不一致

## Applications

console_search_apps = 識別子、または名前の先頭
console_search = 検索
console_new_app = アプリケーションを追加
console_import = インポート
console_apps_none = アプリケーションはまだありません。最初のアプリケーションを作成するか、既存のものをインポートしてください。
console_apps_not_found = この識別子のアプリケーションも、名前がこの文字列で始まるアプリケーションもありません。大文字と小文字は区別されます。
console_name = 名前
console_ident = 識別子
console_key = 鍵
console_state = 状態
    .active = 有効
    .disabled = 無効
    .revoked = 取り消し済み
console_default_version = 既定のバージョン
console_created = 作成日時
console_rate_limit = レート制限
console_profile = 署名の規則
console_return_to = ログイン後の戻り先にできるオリジン
console_overlap = 前の鍵の有効期限
console_revision = リビジョン
console_as_gateway = ゲートウェイと同じ
console_unchanged = 変更なし
console_create = 作成
console_created_app = { $name } を作成しました
console_rotated = { $name } の新しい鍵を発行しました
console_key_once = 鍵が表示されるのは今だけです。クライアントが鍵を読み取る場所に保存してください。
console_try = 試してみる
console_samples = 各言語のコード
console_samples_how = 各コードは、その言語のクライアントライブラリ（Signpost のソースの gateway/clients にある 1 ファイル）を使います。キーはファイル data/app.key から読みます。
console_to_app = { $name } を開く
console_rotate_how = 今後、クライアントは新しい鍵で署名します。すべてのクライアントが切り替えられるように、前の鍵も数時間は有効です。
console_end_overlap_how = まだ前の鍵で署名しているクライアントは、すぐに拒否されます。
console_disable_how = アプリケーションのリクエストは、再び有効化されるまですべて拒否されます。鍵と設定は残ります。
console_enable_how = アプリケーションのリクエストは再び受け付けられます。鍵は同じです。
console_delete_how = アプリケーションとその鍵と設定は完全に削除されます。クライアントは拒否されます。
console_delete_other_name = 何も削除されていません。入力された名前がアプリケーションの名前と一致しません。
console_stale = その間に、別の人がこのアプリケーションを変更しました。上に現在の内容、フォームに入力した内容が表示されています。比べたうえで、変更がまだ必要であれば、フォームをもう一度送信してください。
console_import_how = CSV または JSON Lines で、1 行に 1 つずつ、アプリケーションの識別子と鍵を指定します。すべてインポートされるか、何もインポートされないかのどちらかです。後者の場合は、どの行に何の問題があるかが表示されます。
console_imported = インポートしました: { $number }
console_allow_weak_key = 128 ビット未満の鍵を受け入れる
console_field_name = 名前
    .hint = 1～64 文字。ユーザーのログイン時に表示されます。
console_field_default_version = 指定のないリクエストで使うバージョン
console_field_rate_limit = 個別のレート制限
    .hint = 例: 100/200（1 秒あたりのリクエスト数と、バーストのリクエスト数）。または unlimited。空の場合はゲートウェイと同じです。
console_field_return_to = ログイン後の戻り先にできるオリジン
    .hint = 1 行に 1 つ（例: https://shop.example）。
console_field_preset = 正規化文字列
console_field_algorithm = アルゴリズム
console_field_cover = 署名の対象
console_field_replay = 繰り返しのリクエスト
console_field_overlap_hours = 前の鍵を有効にしておく時間（単位: 時間）
    .hint = 0～720。
console_field_confirm = アプリケーションの名前を入力してください
console_field_reason = 理由
    .hint = 監査に記録されます。空でもかまいません。
console_field_file = インポートする行
console_field_token = トークン
    .hint = sp_ で始まります。
console_change = 変更
    .update = 設定を変更
    .rotate = 新しい鍵を発行
    .end-overlap = 前の鍵を無効化
    .enable = 有効化
    .disable = 無効化
    .delete = 削除
    .drain = ドレイン
    .undrain = ドレインを解除
    .revoke = トークンを取り消す

## Versions

console_version = バージョン
console_stage = 段階
console_stage_of = バージョンの段階
    .current = 現行
    .deprecated = 非推奨
    .brownout = 一時停止中
    .past-sunset = 終了予定日経過
    .retired = 提供終了
console_default = 既定
console_deprecated = 非推奨の開始
console_sunset = 終了予定日
console_after_sunset = 終了予定日以降
console_after = 終了予定日以降
    .serve = リクエストを処理
    .gone = リクエストに 410 を返す
console_today = 今日
console_brownout = 一時停止
console_addresses = アドレス
console_used_by = 過去 30 日間: リクエスト { $requests } 件、全体の { $percent }%、アプリケーション { $applications } 個。
console_bridge_to = クライアントにはブリッジを通して { $to } が応答します。
console_shadow_of = { $to } へのコピー: 応答の組 { $pairs } 件、相違のあるパス { $paths } 個、アプリケーション { $all } 個のうち { $applications } 個に影響。
console_shadow_changed = 変更を適用した { $to } へのコピー: 応答の組 { $pairs } 件、相違のあるパス { $paths } 個、アプリケーション { $all } 個のうち { $applications } 個に影響。
console_unseen = まだ確認されていないもの
console_path = パス
console_here = こちら
console_there = 相手
console_pairs = 組
console_share = 全リクエストに占める割合
console_users = まだ使用しているアプリケーション
console_requests = リクエスト数
console_client = 最後のクライアント
console_until = 解除予定
console_force = ほかにアドレスがない場合もドレインする（バックエンドへのリクエストは拒否されます）
console_field_minutes = 自動で解除されるまでの時間（分）
console_kind = リクエストの集計対象
    .callbacks = ログインのコールバック
    .others = ほかのアプリケーション
console_part = バージョンの構成要素
    .own = 本体
    .canary = カナリア
    .route = ルート
console_health = アドレスのヘルス状態
    .healthy = 正常
    .unhealthy = 異常
    .unreachable = 接続不可
    .drained = ドレイン済み
    .unchecked = 未チェック
    .unknown = 不明

## Audit

console_audit_none = 記録はありません。
console_filter = 絞り込み
console_when = 日時
console_who = 実行者
console_action = 操作
console_subject = 対象
console_changes = 変更前 → 変更後
console_reason = 理由
console_field_since = 開始時点
    .hint = 例: 7d、12h、2026-11-26。
console_field_actor = 実行者
console_field_subject = 対象

## Settings

console_tokens = トークン
console_reload = 設定を再読み込み
console_configuration_how = このゲートウェイが動作に使用している設定です。設定の元はゲートウェイのファイルで、ここから編集されることはありません。秘密の値は表示されません。
console_setting = キー
console_value = 値
console_source = 取得元
console_source_of = 値の取得元
    .file = 設定ファイル
    .environment = 環境変数
    .secret-file = 専用のファイル
    .default = 既定値
console_before = 変更前
console_afterwards = 変更後
console_reload_changes = 再読み込みで変わる設定
console_reload_later = 新しいプロセスが必要な設定
console_reload_nothing = ファイルは現在有効な設定と同じです。再読み込みしても何も変わりません。
console_reload_rejected = 再読み込みは拒否され、現在有効な設定のままになります。先にファイルを修正してください。
console_role = ロール
    .viewer = 閲覧者
    .operator = 運用者
    .admin = 管理者
console_last_used = 最終使用
console_ends = 有効期限
console_new_token = トークンを追加
console_created_token = トークン { $name } を作成しました
console_token_once = トークンが表示されるのは今だけです。安全な方法で使用者に渡してください。
console_field_role = ロール
console_field_days = 有効日数
    .hint = 1～366。

## トラフィック

console_traffic = 直近 1 時間のリクエスト
console_traffic_none = 直近 1 時間のリクエストはありません。ゲートウェイが受けたリクエストは、数秒後にここに表示されます。
console_traffic_most = 1 分あたり最大 { $requests } 件
console_traffic_begin = 1 時間前
console_traffic_end = 現在
console_no_version = バージョンなし
console_answered = 応答
console_rejected = 拒否
console_failed = 失敗
console_causes = リクエストが拒否または失敗した理由
console_rejected_apps = アプリケーションごとの拒否されたリクエスト

## 署名診断

console_doctor = 署名診断
console_doctor_paste = 拒否されたリクエスト
console_doctor_by_id = 拒否されたリクエストを ID で探す
console_examine = 診断する
console_find = 探す
console_field_request = リクエスト
    .hint = リクエスト行から始まる送信内容、curl または PowerShell のコマンド、curl -v の出力、fetch(…)、HAR、または URL。
console_field_app = アプリケーション
    .hint = リクエストに含まれていない場合の識別子。
console_field_canonical = クライアントが署名する文字列
    .hint = 空でもかまいません。入力すると、最初の違いを表示します。
console_field_version = バージョン
console_field_status = ステータス
console_field_request_id = リクエスト ID
    .hint = X-Request-Id またはエラーにあるもの。
console_rejection_gone = どのゲートウェイも、このリクエストをもう保持していないか、拒否していません。代わりにリクエストを貼り付けてください。
console_rejection_params = パラメーター（値のバイト数）
console_rejection_how = パラメーターの値は保持されません。各手順を見るには、リクエスト自体を貼り付けてください。
console_client_address = クライアント
console_backend = バックエンド
console_doctor_wrong = ゲートウェイはこのリクエストを拒否します。
console_doctor_right = 確認した範囲では、ゲートウェイはこのリクエストを受け付けます。
console_doctor_old = このリクエストに誤りはありませんが、古いため再送できません。
console_step = ゲートウェイの手順
    .request = メソッド、ヘッダー、本文の区切り
    .callback = プロバイダーからのリダイレクト（署名は不要）
    .app = アプリケーション
    .params = フォームとパラメーター
    .time = 時刻
    .sign = 署名
    .route = バージョンとルート
    .account = アカウント
console_doctor_params = 署名される順のパラメーター
console_doctor_sent = 送信された形
console_doctor_signed = 署名の対象
console_yes = はい
console_no = いいえ
console_doctor_canonical = 署名する文字列
console_doctor_difference = クライアントの文字列は { $at } バイト目の後で異なります。
console_doctor_expected = 正しいもの
console_doctor_found = クライアントのもの
console_doctor_request = 現在の時刻での正しいリクエスト

## ライブ

console_live = ライブ
console_live_now = 到着するリクエスト
console_live_script = スクリプトを実行するブラウザーでは、リクエストがここに表示されます。
console_live_on = このゲートウェイのリクエストが、終わるたびにここに表示されます。
console_live_off = 接続が切れました。ブラウザーが再接続します。
console_live_ended = ゲートウェイが接続を終了しました。セッションが終わったか、ライブのページが多すぎます。ページを再読み込みしてください。
console_live_missed = リクエストが多いため、直近 1 秒の # 件を省略しました。絞り込むと、探しているものが表示されます。
console_live_rejected = 最近拒否されたリクエスト
console_rejections_none = ゲートウェイの起動後に拒否されたリクエストはありません。
console_explain = { $id } を説明する
console_all = すべて
console_request = リクエスト
console_app = アプリケーション
console_status = ステータス
console_duration = ミリ秒
console_app_versions = 直近 30 日に呼び出したバージョン
console_app_unused = 呼び出したものはありません。
