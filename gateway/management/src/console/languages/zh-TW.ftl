# 主控台的文字（繁體中文）。API 的用詞（例如狀態）是以該詞為名的屬性。

## The frame

console_skip = 跳到內容
console_navigation = 主控台導覽
console_overview = 總覽
console_apps = 應用程式
console_versions = 版本
console_audit = 稽核
console_settings = 設定
console_sign_out = 登出
console_problem_code = 錯誤碼
console_problem_request = 請求編號
console_problem_back = 返回總覽
console_next_page = 下一頁
console_copy = 複製
console_copied = 已複製
console_done = 完成
    .signed-out = 您已登出。
    .session-ended = 您的權杖已過期或已被撤銷。請重新登入。
    .app-update = 應用程式已變更。
    .app-end-overlap = 舊金鑰已失效。
    .app-enable = 應用程式的請求重新被接受。
    .app-disable = 應用程式的請求從現在起會遭到拒絕。
    .app-delete = 應用程式已刪除。
    .drain = 該位址不再收到新請求。
    .undrain = 該位址重新收到請求。
    .reloaded = 設定已重新載入。
    .token-revoked = 權杖已撤銷。所有閘道都會拒絕它。

## Sign in

console_sign_in = 登入
console_sign_in_how = 請用管理 API 的權杖登入。權杖可由管理員為您建立，也可由您在閘道所在的機器上建立：
console_sign_in_button = 登入
console_sign_in_account = 使用帳號登入
console_account_failed = 登入失敗，或未被確認。請重新開始。
console_account_other_browser = 此登入是在另一個瀏覽器中開始的，或已逾時。請重新開始。
console_account_busy = 目前登入的人很多。請數秒後重新開始。
console_account_no_app = 主控台用於登入的應用程式不存在或已停用：閘道檔案中的 management.console.application。
console_account_unknown = { $provider } 的帳號 { $username } 不能登入。管理員可在閘道檔案的 management.console.accounts 中允許它。

## Overview

console_attention = 需要注意
console_attention_none = 無：所有閘道皆已就緒，所有位址皆在接收請求。
console_attention_brownout = 版本 { $version } 已暫時關閉，其請求目前會遭到拒絕。
console_attention_address = 後端 { $backend } 的位址 { $address }：{ $health }。
console_attention_readiness = { $host } 上的閘道回報：{ $readiness }
console_attention_differs = { $host } 上的閘道與其他閘道的設定不同。不同的鍵：{ $keys }
console_attention_reload = { $host } 上的閘道拒絕了最近一次設定重新載入。
console_gateways = 閘道
console_last_changes = 最近的變更
console_all_changes = 此應用程式的全部變更
console_host = 主機
console_ready = 狀態
console_release = 程式版本
console_started = 啟動時間
console_configuration = 設定內容
console_certificates = 憑證
console_readiness = 閘道的狀態
    .ready = 就緒
    .not-ready = 未就緒
    .gone = 離線
    .differs = 不一致

## Applications

console_search_apps = 識別碼，或名稱的開頭
console_search = 搜尋
console_new_app = 新增應用程式
console_import = 匯入
console_apps_none = 還沒有應用程式。請建立第一個應用程式，或匯入既有的應用程式。
console_apps_not_found = 沒有應用程式使用此識別碼，也沒有應用程式的名稱以此開頭。大小寫須相符。
console_name = 名稱
console_ident = 識別碼
console_key = 金鑰
console_state = 狀態
    .active = 已啟用
    .disabled = 已停用
    .revoked = 已撤銷
console_default_version = 預設版本
console_created = 建立時間
console_rate_limit = 速率限制
console_profile = 簽章規則
console_return_to = 登入可返回的來源
console_overlap = 舊金鑰有效期至
console_revision = 修訂號
console_as_gateway = 與閘道相同
console_unchanged = 不變更
console_create = 建立
console_created_app = 已建立 { $name }
console_rotated = 已為 { $name } 產生新金鑰
console_key_once = 金鑰只在此時顯示。請將其存放到用戶端讀取金鑰的位置。
console_try = 試試看
console_samples = 各種語言的程式碼
console_samples_how = 每段程式碼使用該語言的用戶端程式庫：Signpost 原始碼 gateway/clients 中的一個檔案。金鑰從檔案 data/app.key 讀取。
console_to_app = 前往 { $name }
console_rotate_how = 用戶端從現在起用新金鑰簽章。舊金鑰在幾小時內繼續有效，以便所有用戶端完成更換。
console_end_overlap_how = 仍用舊金鑰簽章的用戶端會立即遭到拒絕。
console_disable_how = 在重新啟用之前，應用程式的所有請求都會遭到拒絕。其金鑰與設定會保留。
console_enable_how = 應用程式的請求會重新被接受，金鑰不變。
console_delete_how = 應用程式及其金鑰與設定會永久刪除。其用戶端會遭到拒絕。
console_delete_other_name = 未作任何刪除：您輸入的名稱不是該應用程式的名稱。
console_stale = 期間有人變更了此應用程式。上方是其目前的內容，表單中是您填寫的內容。請對照；如仍需變更，請再次送出表單。
console_import_how = 每行一個應用程式，格式為 CSV 或 JSON Lines，各含識別碼與金鑰。只會全部匯入或全不匯入；未匯入時會顯示哪一行有什麼問題。
console_imported = 已匯入：{ $number }。
console_allow_weak_key = 接受不足 128 位元的金鑰
console_field_name = 名稱
    .hint = 1 到 64 個字元。使用者登入時會看到它。
console_field_default_version = 未指明版本的請求所用的版本
console_field_rate_limit = 單獨的速率限制
    .hint = 例如 100/200：每秒請求數與突發請求數。或：unlimited。留空：與閘道相同。
console_field_return_to = 登入可返回的來源
    .hint = 每行一個，例如 https://shop.example。
console_field_preset = 正規化字串
console_field_algorithm = 演算法
console_field_cover = 簽章範圍
console_field_replay = 重複的請求
console_field_overlap_hours = 舊金鑰繼續有效的小時數
    .hint = 0 到 720。
console_field_confirm = 請輸入應用程式的名稱
console_field_reason = 原因
    .hint = 供稽核使用，可留空。
console_field_file = 各行內容
console_field_token = 權杖
    .hint = 以 sp_ 開頭。
console_change = 變更
    .update = 變更設定
    .rotate = 產生新金鑰
    .end-overlap = 使舊金鑰失效
    .enable = 啟用
    .disable = 停用
    .delete = 刪除
    .drain = 摘除
    .undrain = 恢復
    .revoke = 撤銷

## Versions

console_version = 版本
console_stage = 階段
console_stage_of = 版本的階段
    .current = 現行
    .deprecated = 已棄用
    .brownout = 暫時關閉
    .past-sunset = 已過停止服務時間
    .retired = 已停止服務
console_default = 預設
console_deprecated = 棄用時間
console_sunset = 停止服務時間
console_after_sunset = 停止服務時間之後
console_after = 停止服務時間之後
    .serve = 請求照常處理
    .gone = 請求傳回 410
console_today = 今天
console_brownout = 暫時關閉
console_addresses = 位址
console_used_by = 最近 30 天：{ $requests } 個請求，占全部的 { $percent }%，來自 { $applications } 個應用程式。
console_bridge_to = 其用戶端經橋接由 { $to } 服務。
console_shadow_of = 傳給 { $to } 的副本：{ $pairs } 對回應，{ $paths } 個路徑不同，影響 { $all } 個應用程式中的 { $applications } 個。
console_shadow_changed = 套用變更後傳給 { $to } 的副本：{ $pairs } 對回應，{ $paths } 個路徑不同，影響 { $all } 個應用程式中的 { $applications } 個。
console_unseen = 尚未出現
console_path = 路徑
console_here = 本版本
console_there = 對方
console_pairs = 對
console_share = 占全部請求的比例
console_users = 仍在使用的應用程式
console_requests = 請求數
console_client = 最近的用戶端
console_until = 直到
console_force = 即使沒有其他位址也摘除：此後端的請求隨後會遭到拒絕
console_field_minutes = 自動恢復前的分鐘數
console_kind = 請求的計數對象
    .callbacks = 登入回呼
    .others = 其他應用程式
console_part = 版本的組成部分
    .own = 版本本身
    .canary = 金絲雀
    .route = 路由
console_health = 位址的健康狀態
    .healthy = 健康
    .unhealthy = 不健康
    .unreachable = 無法連線
    .drained = 已摘除
    .unchecked = 未檢查
    .unknown = 未知

## Audit

console_audit_none = 沒有記錄。
console_filter = 篩選
console_when = 時間
console_who = 操作者
console_action = 操作
console_subject = 對象
console_changes = 變更前 → 變更後
console_reason = 原因
console_field_since = 起始時間
    .hint = 例如 7d、12h 或 2026-11-26。
console_field_actor = 操作者
console_field_subject = 對象

## Settings

console_tokens = 權杖
console_reload = 重新載入設定
console_configuration_how = 此閘道執行時所用的設定。它來自閘道的檔案，此處不會更動這些檔案。機密值已隱藏。
console_setting = 鍵
console_value = 值
console_source = 來源
console_source_of = 值的來源
    .file = 設定檔
    .environment = 環境變數
    .secret-file = 單獨的檔案
    .default = 預設值
console_before = 變更前
console_afterwards = 變更後
console_reload_changes = 重新載入會變更
console_reload_later = 以下變更需要新的處理程序
console_reload_nothing = 檔案與生效的設定一致：重新載入不會變更任何內容。
console_reload_rejected = 重新載入會遭到拒絕，生效的設定保持不變。請先修正檔案：
console_role = 角色
    .viewer = 檢視者
    .operator = 維運人員
    .admin = 管理員
console_last_used = 最近使用
console_ends = 到期時間
console_new_token = 新增權杖
console_created_token = 已建立權杖 { $name }
console_token_once = 權杖只在此時顯示。請透過安全的方式交給使用者。
console_field_role = 角色
console_field_days = 有效天數
    .hint = 1 到 366。

## 流量

console_traffic = 最近一小時的請求
console_traffic_none = 最近一小時沒有請求。閘道收到請求數秒後會顯示在這裡。
console_traffic_most = 每分鐘最多 { $requests } 個請求
console_traffic_begin = 一小時前
console_traffic_end = 現在
console_no_version = 沒有版本
console_answered = 已回應
console_rejected = 已拒絕
console_failed = 失敗
console_causes = 請求被拒絕或失敗的原因
console_rejected_apps = 各應用程式被拒絕的請求

## 簽章診斷

console_doctor = 簽章診斷
console_doctor_paste = 被拒絕的請求
console_doctor_by_id = 依請求 ID 尋找被拒絕的請求
console_examine = 診斷
console_find = 尋找
console_field_request = 請求
    .hint = 從請求列開始的原始請求；curl 或 PowerShell 指令，或 curl -v 的輸出；fetch(…)；HAR；或 URL。
console_field_app = 應用程式
    .hint = 請求中沒有應用程式時，填寫其識別碼。
console_field_canonical = 用戶端簽章的字串
    .hint = 可以留空。填寫後顯示第一處差異。
console_field_version = 版本
console_field_status = 狀態碼
console_field_request_id = 請求 ID
    .hint = 見 X-Request-Id 或錯誤回應。
console_rejection_gone = 沒有閘道仍保留此請求，或沒有閘道拒絕過它。請改為貼上請求。
console_rejection_params = 參數及其值的位元組數
console_rejection_how = 參數的值不會保留。要查看每一步，請貼上請求本身。
console_client_address = 用戶端
console_backend = 後端
console_doctor_wrong = 閘道會拒絕此請求。
console_doctor_right = 就所檢查的內容而言，閘道會接受此請求。
console_doctor_old = 此請求沒有錯誤，但已過期，不能再次傳送。
console_step = 閘道的步驟
    .request = 方法、標頭與本文的分框
    .callback = 提供者的重新導向（不需簽章）
    .app = 應用程式
    .params = 表單與參數
    .time = 時間
    .sign = 簽章
    .route = 版本與路由
    .account = 帳戶
console_doctor_params = 依簽章順序排列的參數
console_doctor_sent = 傳送的形式
console_doctor_signed = 納入簽章
console_yes = 是
console_no = 否
console_doctor_canonical = 待簽章的字串
console_doctor_difference = 用戶端的字串在第 { $at } 個位元組之後不同：
console_doctor_expected = 正確
console_doctor_found = 用戶端
console_doctor_request = 使用目前時間的正確請求

## 即時

console_live = 即時
console_live_now = 即時請求
console_live_script = 在啟用指令碼的瀏覽器中，請求會顯示在這裡。
console_live_on = 本閘道的請求結束後會顯示在這裡。
console_live_off = 連線已中斷。瀏覽器會重試。
console_live_ended = 閘道已結束連線：工作階段已結束，或即時頁面過多。請重新載入頁面。
console_live_missed = 請求很多：最近一秒有 # 個未顯示。請用篩選查看所需的請求。
console_live_rejected = 最近被拒絕的請求
console_rejections_none = 閘道啟動以來沒有拒絕過請求。
console_explain = 說明 { $id }
console_all = 全部
console_request = 請求
console_app = 應用程式
console_status = 狀態碼
console_duration = 毫秒
console_app_versions = 最近 30 天呼叫過的版本
console_app_unused = 沒有呼叫過。
