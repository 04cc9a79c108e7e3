# Signpost 顯示的全部文字（繁體中文）。每個檔案的鍵都相同；錯誤碼即鍵，值為標題，`.detail` 說明如何處理。
# 頁面上以 `.page-title` 與 `.page` 代替：瀏覽器中的使用者並未撰寫請求；`.developer` 代替 `.detail`，供應用程式的開發者參考。三者皆不帶參數。

## Errors

target_invalid = 請求位址格式錯誤
    .detail = { malformed }
    .about = 請求目標必須是符合 RFC 3986 的路徑與查詢字串，每個「%」後須有兩位十六進位數字，且有且僅有一個有效的 Host 標頭。
    .page-title = { page_link_title }
    .page = { page_link_detail }
target_ambiguous = 請求路徑有歧義
    .detail = 後端可能把此路徑理解為另一個路徑：第 { $position } 個位元組處是 { $found }。請不要使用空的路徑段、「.」、「..」、「;」、「\」、編碼後的「/」或控制字元，路徑段不要以「.」或空格結尾，並使用 UTF-8 編碼。
    .about = 後端可能把此路徑理解為另一個路徑。路徑中不得有空的路徑段、「.」、「..」、「;」、「\」、編碼後的「/」或控制字元，路徑段不得以「.」或空格結尾，並且須使用 UTF-8 編碼。
    .page-title = { page_link_title }
    .page = { page_link_detail }
params_malformed = 參數格式錯誤
    .detail = { malformed }
    .about = 查詢字串或表單中有錯誤的百分號編碼、必須編碼的字元，或不是 UTF-8 的位元組。
    .page-title = { page_link_title }
    .page = { page_link_detail }
malformed = { $fault ->
        [character] { malformed_place }：此處不能直接使用 { $found }，請對其進行百分號編碼。
        [escape] { malformed_place }：「%」後沒有兩位十六進位數字。
        [encoding] { malformed_place }：不是 UTF-8。
        [gbk] { malformed_place }：不是 UTF-8，看起來是 GBK 或 GB18030。請使用 UTF-8 編碼文字。
        [slash] 請求目標必須以「/」開頭，通訊協定和主機名稱不寫在其中，主機名稱寫在 Host 標頭中。
        [hosts] 必須有且僅有一個 Host 標頭。
       *[other] 請求目標、其通訊協定或 Host 標頭格式錯誤。
    }
malformed_place = { $place ->
        [path] 路徑的第 { $position } 個位元組
        [host] Host 的第 { $position } 個位元組
        [query] 查詢字串的第 { $position } 個位元組
        [query_parameter] 查詢字串的第 { $position } 個位元組，參數「{ $name }」
        [form] 表單的第 { $position } 個位元組
       *[form_parameter] 表單的第 { $position } 個位元組，參數「{ $name }」
    }
params_too_many = 參數過多
    .detail = 最多接受 { $limit } 個參數。
    .about = 請求的參數個數超過上限（預設為 256 個）。
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_missing = 缺少參數
    .detail = 需要參數「{ $name }」。
    .about = 缺少「detail」中指出的必要參數。
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_invalid = 參數無效
    .detail = { $rule ->
        [once] 參數「{ $name }」只能出現一次。
        [only_one] 以下參數只能傳送其中一個：{ $allowed }。
        [text] 參數「{ $name }」最多 { $allowed } 位元組，且不得包含空字元。
       *[values] 參數「{ $name }」只接受：{ $allowed }。
    }
    .about = 「detail」中指出的參數值不被允許，或出現了兩次。允許的值請見「detail」。
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_duplicated = 參數重複
    .detail = 參數「{ $name }」只能出現一次。
    .about = 「detail」中指出的參數只能出現一次：「time」、「sign」、供瀏覽器存取的路徑上的「app」，或登入回呼的參數。
    .page-title = { page_link_title }
    .page = { page_link_detail }
header_duplicated = 標頭重複
    .detail = 標頭 { $name } 只能出現一次。
    .about = 「detail」中指出的標頭只能出現一次。
    .page-title = 請求在途中遭到更動
    .page = 請求可能被瀏覽器擴充功能或代理伺服器改動。請將其關閉，返回應用程式後重試。
body_not_allowed = 此處不允許請求主體
    .detail = GET 請求沒有主體。請把參數放在查詢字串中，或改用 POST。
    .page-title = { page_link_title }
    .page = { page_link_detail }
app_missing = 未指明應用程式
    .detail = 請在標頭 { $name } 中傳送您的應用程式識別碼。
    .page-title = { page_link_title }
    .page = { page_link_detail }
    .developer = 連結中須加入參與簽章的查詢參數「app」。
version_contradictory = 請求指定了兩個版本
    .detail = 路徑或主機屬於版本 { $placed }，但請求要求另一個版本。請只指定一個版本。
    .about = 版本標頭、主機與路徑開頭指定了不同的版本。請只指定一個版本。
version_unknown = 沒有這個版本
    .detail = 可用的版本：{ $versions }。
    .about = 標頭中的版本不存在。可用的版本請見「detail」。
    .page-title = { page_link_title }
    .page = { page_link_detail }
time_invalid = 時間無效
    .detail = 「time」必須是自 1970 年起的 UTC 毫秒數，以十進位數字表示。
    .page-title = { page_link_title }
    .page = { page_link_detail }
login_mismatch = 此頁面已失效
    .detail = 此登入已被再次開啟，或在另一個瀏覽器中開啟。請返回應用程式重新開始，並且只使用一個視窗。
authorization_missing = 您尚未登入
    .detail = 此請求需要在標頭 { $name } 中附上登入傳回的「authorization」。
    .page = 請返回應用程式並登入。
authorization_invalid = 您的登入已失效
    .detail = 標頭 { $name } 中的憑證不存在、已過期、已失效，或屬於其他應用程式。請重新登入。
    .page = 請重新登入。
authorization_malformed = 憑證格式錯誤
    .detail = 標頭 { $name } 的值應為登入傳回的「authorization」：43 個 base64url 字元，前面可加「Bearer 」。常見原因：值被截斷、帶有引號、使用了「Basic」、「Bearer」重複，或值為「undefined」或「null」。
    .page = 請返回應用程式並重新登入。
time_missing = 缺少時間
    .detail = 帶參數的請求需要「time」（毫秒）與「sign」。
    .page-title = { page_link_title }
    .page = { page_link_detail }
time_out_of_window = 時間偏差過大
    .detail = 「time」與伺服器時鐘最多相差 { $window } 秒。請檢查裝置的時鐘。
    .about = 「time」與伺服器時鐘相差過大；「server_time」是以毫秒表示的伺服器時間。請據此校正時間，然後重新簽章。
    .page-title = 此連結已過期
    .page = 連結只在短時間內有效。請返回應用程式重新開始。
    .developer = 請在瀏覽器開啟連結前才產生簽章；若仍發生錯誤，請檢查時鐘。
sign_missing = 缺少簽章
    .detail = 此請求必須簽章：需要「time」與「sign」。
    .page-title = { page_link_title }
    .page = { page_link_detail }
sign_mismatch = 簽章不符
    .detail = 「sign」的值與這些參數及此應用程式的金鑰不符。
    .page-title = { page_link_title }
    .page = { page_link_detail }
prefetch_refused = 登入頁面不能預先載入
    .detail = 請求表明自己是預先載入，但登入的位址只能使用一次。不帶該標頭的相同請求會得到處理。
    .page = 此頁面僅在您開啟時載入。請返回並重新開啟連結。
app_disabled = 應用程式已停用
    .detail = 請聯絡服務的營運者啟用它。
    .page-title = 此應用程式目前無法使用
    .page = 此處已停用該應用程式的登入。請洽詢應用程式的開發者。
login_denied = 登入遭拒
    .detail = 沒有任何人登入：授權在登入提供者處遭拒，或登入已被取消。如需登入，請返回應用程式重新開始。
network_mismatch = 此次登入是在另一個網路中發起的
    .detail = 這裡只允許在發起登入的網路中確認登入。請返回應用程式，讓應用程式所在的裝置和此瀏覽器使用同一網路，然後重新開始。如果此次登入不是由您本人發起，請關閉此頁面。
return_to_not_allowed = 不允許的返回位址
    .detail = 「return_to」必須是為該應用程式登記的來源下的 http 或 https 位址，且不含片段（「#」）。
    .page-title = { page_link_title }
    .page = { page_link_detail }
gateway_required = 此處只接受閘道的請求
    .detail = 請把請求傳送到閘道的位址。
    .page-title = { page_link_title }
    .page = { page_link_detail }
app_not_found = 沒有這個應用程式
    .detail = 請檢查應用程式識別碼。
    .page-title = { page_link_title }
    .page = { page_link_detail }
    .developer = 請檢查參與簽章的查詢參數「app」。
not_found = 沒有這個端點
    .detail = 請檢查請求的路徑。
    .page-title = 此處沒有頁面
    .page = 請返回應用程式後重試。
login_unknown = 找不到此登入
    .detail = 它從未開始、早已結束，或屬於另一個應用程式。
    .page-title = 此登入已不存在
    .page = 連結不完整，或此登入早已結束。請返回應用程式重新開始。
https_required = 此呼叫需要使用 https
    .detail = 簽章、憑證或表單未經加密就已傳送，網路中的其他人可能已經讀到。請傳送到 https 位址。如果其中有憑證，請讓使用者登出後重新登入。
    .page-title = { page_link_title }
    .page = { page_link_detail }
upgrade_not_supported = 不支援切換協定
    .detail = Upgrade 標頭要求使用其他協定，例如 WebSocket。此閘道只提供 HTTP。請求沒有被轉送。
    .page-title = { page_link_title }
    .page = { page_link_detail }
method_not_allowed = 不允許的請求方法
    .detail =
        { $scope ->
            [gateway] 此閘道只接受 { $methods }。
           *[path] 此路徑只接受 { $methods }。
        }
    .about = 此路徑不接受該請求方法。可用的方法請見「detail」與 Allow 標頭。
    .page-title = { page_link_title }
    .page = { page_link_detail }
request_timeout = 請求逾時
    .detail = 標頭與本文必須各在 { $seconds } 秒內到達。
    .about = 標頭或本文未及時到達。請求未被轉送。
    .page = 請求到達得太慢。請檢查網路連線後重試。
request_replayed = 此請求已經收到過
    .detail = 請為每個請求重新簽章：一個簽章只接受一次。
    .page-title = 此連結已被使用
    .page = 連結只能使用一次。請返回應用程式重新開始。
    .developer = 一個簽章只接受一次。
login_pending = 登入尚未完成
    .detail = 請先在瀏覽器中完成登入。
login_used = 此登入已被使用
    .detail = 此登入已有結果，結果不變。如有需要，請重新登入。
    .page-title = 此登入已經結束
    .page = 它先前已完成或取消，可能是在另一個視窗中。如果您尚未登入，請返回應用程式重新開始。
idempotency_conflict = 此冪等鍵已被使用
    .detail = 此鍵已用於其他內容。請為每個新事件或請求使用新的鍵。
version_retired = 此版本已停止服務
    .detail =
        { $scope ->
            [endpoint] 只有此路徑停止服務，該版本的其他路徑不受影響。
           *[version] { "" }
        }{ $versions ->
            [none] 請向服務的營運者詢問應使用的版本。
           *[other] 請改用以下版本之一：{ $versions }。
        }
    .about = 此版本已停止服務。請改用「detail」中列出的版本。
    .page-title = 此應用程式的版本過舊
    .page = 這個應用程式使用的服務版本已不存在。請檢查應用程式是否有更新。
login_expired = 登入已過期
    .detail = 耗時過長。請返回應用程式重新開始。
body_too_large = 請求主體過大
    .detail = 最多接受 { $limit } 位元組。
    .about = 表單超過「detail」中給出的上限。
    .page-title = { page_link_title }
    .page = { page_link_detail }
uri_too_long = 查詢字串過長
    .detail = 最多接受 { $limit } 位元組。較長的值請用 POST 表單傳送。
    .about = 查詢字串超過「detail」中給出的上限。較長的值請用 POST 表單傳送。
    .page-title = { page_link_title }
    .page = { page_link_detail }
content_type_unsupported = 不支援的內容類型
    .detail =
        { $kind ->
            [api] 請以 { $allowed } 傳送本文。
           *[form] 請求主體請使用 UTF-8 的 application/x-www-form-urlencoded，不要使用內容編碼。
        }
    .page-title = { page_link_title }
    .page = { page_link_detail }
rate_limited = 請求過多
    .detail =
        { $limit ->
            [app] 此應用程式的請求已達到上限。請依 Retry-After 標頭給出的時間等待後再試。
            [address] 您的網路位址的請求已達到上限。請依 Retry-After 標頭給出的時間等待後再試。
            [path] 此路徑的請求已達到上限。請依 Retry-After 標頭給出的時間等待後再試。
           *[other] 請依 Retry-After 標頭給出的時間等待後再試。
        }
    .page = 請稍後再試。
headers_too_large = 標頭過大
    .detail = 請求行與標頭合計最多 { $limit } 位元組，標頭最多 { $count } 個。
    .about = 請求行與標頭超過「detail」中給出的上限。
    .page-title = 瀏覽器傳送的資料過多
    .page = 請刪除此網站的 Cookie 後重試。
internal = 我們這邊出了問題
    .detail = 請稍後再試。如果問題持續，請回報請求編號。
backend_unreachable = 無法連線到服務
    .detail = 請稍後再試。
bridge_failed = 無法套用兩個版本之間的變更
    .detail = 變更 {$change} 不適用於此次呼叫。請把 request_id 告訴營運人員。
    .about = 營運人員描述了兩個版本之間的差異，其中一項變更不適用於此次呼叫。請把 request_id 告訴營運人員。
provider_failed = 登入提供者發生錯誤
    .detail = 提供者沒有傳回可用的回應。請稍後重新登入。
    .page = 沒有任何人登入。請稍後返回應用程式重新開始。
spool_full = 沒有空間存放請求主體
    .detail = 請稍後再試。
    .about = 較大的請求主體在驗證之前存放在一個目錄中，該目錄已滿。沒有轉送任何內容。
no_healthy_backend = 服務已中斷
    .detail = 請稍後再試。
version_brownout = 此版本暫時關閉
    .detail =
        { $scope ->
            [endpoint] 僅涉及此路徑，該版本的其他路徑不受影響。
           *[version] { "" }
        }{ $versions ->
            [none] 此版本預定停止服務。在此之前，請在 Retry-After 標頭給出的時間後重試。
           *[other] 此版本預定停止服務，請改用以下版本之一：{ $versions }。在此之前，請在 Retry-After 標頭給出的時間後重試。
        }
    .about = 此版本預定停止服務，現暫時關閉以提醒其用戶端。請改用「detail」中列出的版本。在此之前，請在 Retry-After 標頭給出的時間後重試。
    .page-title = 暫時無法使用
    .page = 這個應用程式使用的服務版本即將停止服務，目前暫時關閉。請檢查應用程式是否有更新，或稍後重試。
store_unavailable = 服務暫時無法使用
    .detail = 無法連線到其資料庫。請稍後再試。
    .page = 請稍後再試。
backend_timeout = 服務未及時回應
    .detail = 請稍後再試。
gateway_stopping = 服務正在重新啟動
    .detail = 請求可能已執行。請先確認，再重新傳送。
    .page = 請返回應用程式，查看是否已登入。如果尚未登入，請重新開始。
provider_timeout = 登入提供者未及時回應
    .detail = 沒有任何人登入。請稍後返回應用程式重新開始。

## Management API

request_malformed = 無法讀取該請求
    .detail = { $problem }
nothing_to_change = 沒有要變更的內容
    .detail = 請至少給出一項設定。
token_missing = 需要權杖
    .detail = 請在 Authorization: Bearer 標頭中傳送權杖。命令 "signpost token create" 可建立權杖。
token_invalid = 權杖無效
    .detail = 權杖未知、已過期或已被撤銷。請向管理員申請新權杖。
account_not_found = 沒有該帳號
    .detail = 請檢查 provider 和 username。使用者登入過一次後，帳號才會存在。
token_not_found = 沒有該權杖
    .detail = 請檢查權杖的編號。
token_taken = 已有同名的權杖
    .detail = 請選擇其他名稱，或先撤銷該權杖。
role_insufficient = 權杖的角色不允許此操作
    .detail = 權杖的角色是 { $role }；此呼叫需要 { $needed }。
cross_site = 其他網站的頁面不得呼叫
    .detail = 請從程式或此位址的頁面呼叫。
app_taken = 已有使用此識別碼的應用程式
    .detail = 未作任何變更。請選擇其他識別碼。
overlap_running = 上一個金鑰仍然有效
    .detail = 它還將有效 { $minutes } 分鐘。請等待，或透過 end-overlap 結束其有效期。
not_drained = 該位址未被摘除
    .detail = 維運人員沒有摘除此後端的這個位址，或摘除時間已結束。
revision_stale = 期間已被變更
    .detail = 未作任何變更。其目前修訂號為 { $revision }：請重新讀取後再決定。
revision_missing = 變更未指明修訂號
    .detail = 請在 If-Match 標頭中或以本文的 "revision" 傳送您讀取的修訂號。
import_invalid = 檔案存在問題
    .detail = 未匯入任何內容。"problems" 按行列出這些問題。
config_invalid = 設定檔存在問題
    .detail = 未作任何變更。"problems" 列出這些問題。
report_too_large = 報告過大
    .detail = 應用程式過多，無法放入一個回應。請在閘道所在的機器上使用命令 "signpost versions report"。
idempotency_unfinished = 首個請求的結果未知
    .detail = 使用此冪等鍵的請求正在執行或已中斷。請讀取它本應變更的內容，然後傳送新的鍵。
address_not_found = 沒有該位址
    .detail = 沒有具有此名稱和此位址的後端。
last_address = 這是該後端的最後一個位址
    .detail = 未作任何變更：沒有它，後端將無法使用。如確需如此，請傳送 "force"。

## Hints

hint_seconds = 是秒嗎？「time」必須以毫秒為單位。
hint_microseconds = 是微秒嗎？「time」必須以毫秒為單位。
hint_nanoseconds = 是奈秒嗎？「time」必須以毫秒為單位，例如 1732104000000。
hint_time_fraction = 「time」帶有小數或指數；請傳送整數毫秒，例如 1732104000000。
hint_time_quoted = 「time」前後有引號或空白字元；請只傳送數字，例如 1732104000000。
hint_time_text = 「time」是日期文字；請用數字傳送自 1970-01-01 00:00 UTC 起的毫秒數，例如 1732104000000。
hint_local_time = 「time」與閘道時鐘相差 { $offset }。是否把當地時間當作了 UTC，或把 UTC 當作了當地時間？請傳送自 1970-01-01 00:00 UTC 起的毫秒數。
hint_not_searched = 未查找原因：這一秒內錯誤簽章過多。請一秒後重試。
hint_too_large = 未查找原因：路徑與參數超過 8 KiB。請用同一程式傳送較小的請求，以查明原因。
hint_unsorted = 簽章前沒有依參數名稱排序。
hint_empty_dropped = 空值的參數被略去了；此應用程式的規則要求它們也參與簽章。
hint_empty_kept = 空值的參數參與了簽章；此應用程式的規則要求略去它們。
hint_decoded = 簽章用的是解碼後的值；此應用程式依傳送時的原樣對參數名稱與值簽章。
hint_encoded = 簽章用的是傳送時的形式或百分號編碼的值；此應用程式對解碼後的值簽章。請求中的「+」表示空格：加號請傳送為「%2B」。
hint_key_labelled = 金鑰前加了「&key=」：串接為 { $found }，應為 { $rule }。
hint_key_not_labelled = 金鑰前缺少「&key=」：串接為 { $found }，應為 { $rule }。
hint_key_in_front = 金鑰放在了最前面：串接為 { $found }，應為 { $rule }。
hint_layout = 參數名稱、值與金鑰串接為 { $found }；此應用程式的串接方式為 { $rule }。
hint_trailing_newline = 簽章文字或金鑰以換行字元結尾；請將其移除，例如從檔案讀取的金鑰末尾的換行字元。
hint_escape_case = 簽章時百分號編碼的大小寫與傳送時不同；請依傳送時的原樣簽章。
hint_cover = { $found ->
    [request] 簽章文字缺少方法與路徑；此應用程式的規則要求將其放在參數之前（cover = request）：方法、換行字元、路徑、換行字元。
    [address] 簽章文字包含位址或路徑；此應用程式的規則只對參數簽章，不含方法、通訊協定、主機、路徑與「?」（cover = parameters）。
   *[parameters] 簽章文字包含方法與路徑；此應用程式的規則只對參數簽章（cover = parameters）。
}
hint_algorithm = { $found ->
    [none] 此應用程式使用 { $rule }，簽章為 { $digits } 位十六進位數字；請求中「sign」的長度屬於其他演算法。
   *[other] 請求使用 { $found } 簽章；此應用程式使用 { $rule }。
}
hint_hmac_hash = 請求使用 { $found } 簽章；此應用程式使用 { $rule }。
hint_time_not_signed = 「time」沒有參與簽章；它和其他參數一樣必須參與簽章。
hint_space_as_escape = 空格傳送為「+」，簽章時卻寫成「%20」；請依傳送時的原樣簽章。
hint_space_as_plus = 空格傳送為「%20」，簽章時卻寫成「+」；請依傳送時的原樣簽章。
hint_query_left_out = 查詢字串中的參數沒有參與簽章；請將查詢字串與表單的參數一併簽章。
hint_preset = 請求依預設集「{ $preset }」的規則簽章，而此應用程式使用的不是該預設集。{ $preset ->
    [decoded] 該預設集對解碼後的值簽章。
    [alipay] 該預設集對解碼後的值簽章，略去空值與「sign_type」。
    [wechat] 該預設集對解碼後的值簽章，略去空值，並在金鑰前加「&key=」。
    [top] 該預設集對解碼後的值簽章，略去空值，串接為 KEYa1b2KEY。
   *[other] {""}
}
hint_previous_key = 請求用舊金鑰簽章，舊金鑰已失效。
hint_encoded_differently = 參數「{ $key }」中，簽章的是「{ $signed }」，傳送的卻是「{ $sent }」。請只編碼一次，並對實際傳送的內容簽章。{ $form ->
    [raw] 簽章時沒有編碼，或使用了 { $function } 之類的函式。
   *[encoded] 兩處使用了不同的編碼函式（例如 { $function } 會產生簽章的形式）。
}
hint_encoded_twice = 請求與簽章文字相差一次百分號編碼，像是某個值在其中一處被編碼了兩次。請只編碼一次，並對實際傳送的內容簽章。
hint_order = 請依解碼後的名稱逐位元組升冪排序；同名參數保持傳送時的順序。{ $found ->
    [value-too] 同名參數又依值排序了。
    [pair] 參數連同「=」與值整體排序了。
    [value] 參數依值排序了。
    [ignoring-case] 參數排序時忽略了大小寫。
    [descending] 參數依降冪排序了。
   *[utf-16] 參數依 UTF-16 排序了。
}
hint_key_missing = 簽章文字不含金鑰；請依此應用程式的規則加入金鑰。
hint_key_in_text = 簽章文字中含有金鑰：串接為 { $found }，應為 { $rule }。使用 HMAC 時，此應用程式的金鑰只用作雜湊函式的金鑰。
hint_key_form = 請原樣使用核發的金鑰文字的位元組。{ $found ->
    [hex] 金鑰以十六進位解碼了。
    [base64] 金鑰以 base64 解碼了。
    [case] 金鑰的大小寫被更動了。
    [quotes] 金鑰加了引號。
    [bom] 金鑰之前有位元組順序標記。
    [cut] 金鑰被截去了一部分。
    [unread] 把預留位置或缺少的值（例如「undefined」）當作了金鑰。
    [swapped] HMAC 的金鑰與文字顛倒了。
   *[space] 金鑰之前或之後有空格。
}
hint_stray_separator = 簽章文字在參數之前有多餘的「?」或「&」，或在參數之後有多餘的「&」。
hint_cover_form = 方法和路徑未按此應用程式的要求簽章：參數之前應依序是大寫的方法、換行字元、按傳送原樣且不含通訊協定、主機與查詢字串的路徑、換行字元。
hint_sign_form = { $found ->
    [base64] 「sign」像是 base64；此應用程式使用 { $rule } 的十六進位形式，共 { $digits } 位。
    [cut] 「sign」只有 16 位十六進位數字，像是截短的 MD5；此應用程式使用 { $rule }，共 { $digits } 位十六進位數字。
    [around] 「sign」的十六進位數字之間或前後有其他字元，例如 md5sum 的輸出或連字號；此應用程式使用 { $rule }，只能有 { $digits } 位十六進位數字。
    [short] 「sign」的十六進位數字太少：遺失了零，例如把雜湊值當作整數輸出，或某個位元組只寫了一位。每個位元組應寫兩位；此應用程式使用 { $rule }，共 { $digits } 位十六進位數字。
   *[other] 「sign」不是雜湊值的十六進位形式；此應用程式使用 { $rule }，共 { $digits } 位十六進位數字。
}
hint_param_signed = 參數「{ $key }」參與了簽章；此應用程式的規則要求將其排除。
hint_param_not_signed = 參數「{ $key }」未參與簽章；此應用程式的規則要求像其他參數一樣簽章。
hint_json = 參數以 JSON 形式簽章；請對實際傳送的鍵值對按此應用程式的規則串接後簽章。
hint_key_or_value = 沒有常見錯誤能解釋此簽章。請將程式簽章的文字與實際傳送的位元組對照，再與此回應中的「canonical」或「signpost sign --canonical」輸出的文字對照；然後檢查使用的是哪個應用程式的金鑰。
hint_version_in_path = 版本不是路徑的一部分。請傳送路徑「{ $path }」，並加上標頭「{ $name }: { $version }」。
hint_missing_value = 缺少的值簽章時寫成「{ $found }」，傳送時卻寫成「{ $rule }」。請略去此類參數，或對實際傳送的內容簽章。
hint_value_changed = 請每個值只產生一次，並對實際傳送的內容簽章。{ $found ->
    [trimmed] 名稱或值前後的空白字元有傳送，卻沒有參與簽章。
    [html] HTML 實體（例如以「&amp;」表示「&」）只出現在簽章文字或請求其中之一。
    [unicode] 簽章文字與傳送內容的字元相同，但 Unicode 正規化形式不同，例如 NFC 與 NFD。
    [number] 數字簽章時的寫法與傳送時不同，例如「1.0」與「1」。
    [boolean] 布林值簽章時的寫法與傳送時不同，例如「True」或「1」與「true」。
    [brackets] 簽章時去掉了參數名稱的方括號，傳送時卻帶有，例如「tag」與「tag[0]」。
    [lines] 換行字元簽章時與傳送時不同：單獨的 LF，或 CR LF。
    [json] 值中的 JSON 產生了兩次，寫法不同：空格或「\/」。
    [once] 多個同名參數中只有一個參與了簽章：映射或字典只保留一個。
    [joined] 多個同名參數被以逗號連接成一個來簽章。
    [text] 計算雜湊值前，整個文字被改成了小寫或大寫；只有「sign」的十六進位數字可用任意大小寫。
    [time] 簽章的「time」與傳送的不同：相差幾毫秒，或以秒為單位。每個請求只讀取一次時鐘。
    [nothing] 沒有任何參數參與簽章：可能在設定參數之前就產生了文字，或請求主體已被讀取過。
    [spaces] 簽章前去掉了名稱與值中的空格。
   *[letters] 名稱與值簽章時被改為小寫或大寫，與傳送時不同。
}
hint_form_left_out = 表單中的參數沒有參與簽章；請將查詢字串與表單的參數一併簽章。
hint_key_sent = 金鑰本身被傳送了。您的金鑰現在已出現在位址或表單中，也可能在記錄檔中：請輪換它。金鑰只用於簽章，絕不傳送。
hint_body_unsigned = 參數簽章不包含這種主體。請在標頭中簽章：時間、簽章，以及可選的隨機數。
hint_headers_missing = 此請求在標頭中簽章：時間在「…-X-Time」，簽章在「…-X-Sign」。
hint_in_parameters = 「{ $found }」作為參數傳送了。此應用程式在標頭中簽章。
hint_line = { $found ->
    [method] 簽章時方法的大小寫不同。
    [path] 簽章的目標缺少查詢字串；應為實際傳送的路徑與查詢字串。
    [address] 簽章的目標包含通訊協定或主機；應為實際傳送的路徑與查詢字串。
    [empty] 簽章時使用了空主體的雜湊值。
    [digits] 主體的雜湊值沒有按 64 位小寫十六進位簽章。
    [body] 簽署了主體本身；最後一行應為其 SHA-256 的十六進位。
    [nonce] 缺少隨機數那一行；沒有隨機數時該行為空。
   *[key] 金鑰那一行不同：md5 在文字末尾有金鑰，hmac-sha256 沒有。
}
hint_in_header = 「{ $found }」作為標頭傳送了。請把「time」與「sign」作為參數，放在查詢字串或表單中傳送。
hint_misnamed = 傳送的參數名稱是「{ $key }」。名稱必須正是小寫的「time」與「sign」。如果前面有「amp;」，表示位址中以「&amp;」代替了「&」。
hint_app_empty = 應用程式識別碼為空。請檢查程式是否讀到了它的設定。
hint_app_key = 作為應用程式識別碼傳送的內容像是金鑰或憑證。請在那裡傳送應用程式識別碼。金鑰只用於簽章，絕不傳送：如果那是您的金鑰，它現在可能已在記錄檔中，請輪換它。
hint_app_unread = 把預留位置或缺少的值（例如「undefined」）當作應用程式識別碼傳送了。請檢查程式是否讀到了它的設定。
hint_app_character = 應用程式識別碼不會有這樣的字元：只允許 A-Z、a-z、0-9、「.」、「_」與「-」。常見原因：引號、空格、預留位置的括號，或把應用程式名稱當作了識別碼。
hint_app_length = 產生的應用程式識別碼有 24 個字元，任何識別碼都不超過 64 個；這個太短或太長。是否複製完整？
hint_app_unknown = 應用程式識別碼的形式沒有問題，但此閘道沒有這個應用程式。大小寫有區別。它是否屬於另一個環境？
hint_app_in_query = 參數「app」只在供瀏覽器使用的路徑上表示應用程式。請在標頭中傳送應用程式識別碼。
hint_path = 是否指「{ $path }」？路徑的大小寫、每個斜線與副檔名都有區別，前面也不能有其他內容。
hint_charset = 參數名稱或值含有 ASCII 以外的字元：簽章與傳送時都請使用 UTF-8 編碼，而不是 GBK 等編碼。
hint_cover_rule = 此應用程式還要求在參數之前依序簽章：大寫的方法、換行字元、依傳送原樣的路徑（不含通訊協定、主機與查詢字串）、換行字元。

## Sign Doctor

doctor_old = 此請求已過了 { $what }。現在傳送會因過期而被拒絕；這不算作錯誤。如果它是剛剛產生的，表示用戶端的時鐘慢了。
doctor_other_app = 請求中的應用程式與另外提供的 { $what } 不同。
doctor_completed = 此處的行沒有歸位字元。已補上行尾、結尾空行與缺少的 Content-Length。
doctor_http2 = 此請求屬於 HTTP/2 或 HTTP/3，已依意義相同的 HTTP/1.1 請求檢查。
doctor_host = 不知道請求傳往哪個主機，已採用 public_url 的主機。
doctor_unread = 以下部分未被讀取：{ $what }
doctor_left = 請求之後還有 { $what } 個位元組。依其 Content-Length 或分塊，它們不屬於此請求，閘道會將其視為下一個請求。
doctor_body = 沒有貼上本文，因此未檢查表單、參數、簽章及後續步驟。
doctor_not_http = 閘道以不帶本文的 400 回應，因為這不是 RFC 9112 所規定的 HTTP：{ $what }。
doctor_unreached = 未檢查後續步驟。
doctor_credential = 未檢查憑證。
doctor_unchecked = 未檢查：請求是否重複、速率限制、TLS 與到 https 的重新導向、閘道前方的代理，以及後端。

## Pages and login

page_confirm_title = 登入 { $application }
page_confirm_compare = 請核對此處的核對碼與 { $application } 顯示的是否一致：
page_confirm_code = 核對碼
page_confirm_warning = 僅當此次登入由您本人發起且兩處核對碼一致時才繼續。
page_confirm_begun = 此次登入於 { $minutes } 分鐘前在網路 { $network } 中發起。
page_confirm_network = 您的瀏覽器位於另一個網路。如果 { $application } 在伺服器上執行或使用其他連線，這是正常的。如果此次登入不是由您本人發起，請取消。
page_confirm_button = 核對碼一致：透過 { $provider } 登入
page_confirm_cancel = 不是我發起的：取消此次登入
page_choose_button = 透過 { $provider } 登入
page_again_title = 登入提供者暫時無法使用
page_again_wait = 此次登入仍然有效，請稍後再試。
page_again_button = 重試
page_cancelled_title = 登入已取消
page_cancelled_close = 沒有任何人登入。您可以關閉此視窗。
page_late_title = 此登入先前已經完成
page_late_warning = 現在無法取消。如果登入不是您本人發起的，可能有人正以您的名義登入 { $application }。請立即告知 { $application }。
page_done_title = 您已登入
page_done_close = 您可以關閉此視窗，返回 { $application }。
page_finishing_title = 正在完成登入
page_finishing_wait = 請稍候，此頁面將在幾秒後自動繼續。
page_finished_title = 此次登入已完成
page_finished_link = 返回 { $application }
page_link_title = 此連結無法使用
page_link_detail = 應用程式產生的連結不被此服務接受。請返回應用程式重新開始。若仍發生錯誤，請將以下資訊傳給應用程式的開發者。
page_problem_code = 錯誤碼
page_problem_status = HTTP 狀態碼
page_problem_retry = 重試是否有用
    .no = 否。同樣的請求會再次失敗。
    .yes = 是。如果回應帶有 Retry-After 標頭，請先等待該時間。每次請求都要用目前的「time」重新簽章。
    .new-login = 需要重新開始登入。
    .log-in = 使用者登入後可以重試。
page_problem_request = 請求編號
page_problem_developer = 供應用程式的開發者參考
page_problem_link = 更多資訊

## Retirement of a version

retire_used = 最近 { $days } 天的請求：{ $number } 個
retire_last_used = 最後一個在 { $at }
retire_users = 應用程式：{ $number } 個（{ $list }）
retire_extended = 延長使用的應用程式：{ $number } 個，最晚至 { $at }
retire_used_lately = 最近 { $days } 天送出過請求的應用程式：{ $number } 個。它們將收到 410。
retire_default = 它是預設版本。
retire_pinned = 以它為預設版本的應用程式：{ $number } 個
retire_paths = 方法與路徑：{ $number } 個（{ $list }）
retire_ending_paths = 有個別日期的路徑：{ $list }
retire_compared = 與 { $to } 的回應對：{ $pairs } 對；路徑：{ $paths } 個，其中不同：{ $differing } 個
retire_no_proof = 這不構成證明：{ $command }
retire_proven = 用戶端使用過的路徑：{ $number } 個，其中已證明：{ $proven } 個
retire_unpaired = 沒有回應對的請求：{ $list }
retire_few_pairs = 回應對不足的請求：{ $list }
retire_unproven = 未證明：{ $request }（{ $number } 個請求）：{ $reason }
retire_unprovable = 它仍在使用，但既沒有橋接，也沒有套用變更的影子。
retire_bridged = 橋接到 { $to }，請求：{ $number } 個
retire_not_bridged = 沒有橋接
retire_own_backend = 它自己的後端仍在服務：請改用 bridge。
retire_brownouts = 已結束：{ $number } 次
retire_brownouts_ahead = 尚未結束：{ $number } 次（{ $list }）
retire_no_brownout = 還沒有結束的暫時關閉。
retire_served = 由它自己的後端服務其請求
retire_served_by_bridge = 由 { $to } 的後端服務其請求
retire_until = 從 { $at } 起請求將收到 410 version_retired
retire_no_end = 沒有結束時間
retire_no_sunset = 它沒有停止服務時間。
retire_other_sunset = 它的停止服務時間是 { $at }：用戶端只知道這個日期。
retire_not_deprecated = 它尚未棄用。
retire_more = { $list } 等，另有 { $number } 個
