# Signpost 显示的全部文字（简体中文）。每个文件的键都相同；错误码即键，值为标题，`.detail` 说明如何处理。
# 页面上以 `.page-title` 和 `.page` 代替它们：浏览器中的用户并未编写请求；`.developer` 代替 `.detail`，供应用的开发者参考。三者均不带参数。

## Errors

target_invalid = 请求地址格式错误
    .detail = { malformed }
    .about = 请求目标必须是符合 RFC 3986 的路径和查询字符串，每个“%”后须有两位十六进制数字，并且有且仅有一个有效的 Host 请求头。
    .page-title = { page_link_title }
    .page = { page_link_detail }
target_ambiguous = 请求路径有歧义
    .detail = 后端可能把此路径理解为另一个路径：第 { $position } 个字节处是 { $found }。请不要使用空的路径段、“.”、“..”、“;”、“\”、编码后的“/”或控制字符，路径段不要以“.”或空格结尾，并使用 UTF-8 编码。
    .about = 后端可能把此路径理解为另一个路径。路径中不得有空的路径段、“.”、“..”、“;”、“\”、编码后的“/”或控制字符，路径段不得以“.”或空格结尾，并且须使用 UTF-8 编码。
    .page-title = { page_link_title }
    .page = { page_link_detail }
params_malformed = 参数格式错误
    .detail = { malformed }
    .about = 查询字符串或表单中有错误的百分号编码、必须编码的字符，或不是 UTF-8 的字节。
    .page-title = { page_link_title }
    .page = { page_link_detail }
malformed = { $fault ->
        [character] { malformed_place }：此处不能直接使用 { $found }，请对其进行百分号编码。
        [escape] { malformed_place }：“%”后没有两位十六进制数字。
        [encoding] { malformed_place }：不是 UTF-8。
        [gbk] { malformed_place }：不是 UTF-8，看起来是 GBK 或 GB18030。请使用 UTF-8 编码文本。
        [slash] 请求目标必须以“/”开头，协议和主机名不写在其中，主机名写在 Host 请求头中。
        [hosts] 必须有且仅有一个 Host 请求头。
       *[other] 请求目标、其协议或 Host 请求头格式错误。
    }
malformed_place = { $place ->
        [path] 路径的第 { $position } 个字节
        [host] Host 的第 { $position } 个字节
        [query] 查询字符串的第 { $position } 个字节
        [query_parameter] 查询字符串的第 { $position } 个字节，参数“{ $name }”
        [form] 表单的第 { $position } 个字节
       *[form_parameter] 表单的第 { $position } 个字节，参数“{ $name }”
    }
params_too_many = 参数过多
    .detail = 最多接受 { $limit } 个参数。
    .about = 请求的参数个数超过上限（默认 256 个）。
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_missing = 缺少参数
    .detail = 需要参数“{ $name }”。
    .about = 缺少“detail”中指出的必需参数。
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_invalid = 参数无效
    .detail = { $rule ->
        [once] 参数“{ $name }”只能出现一次。
        [only_one] 以下参数只能发送其中一个：{ $allowed }。
        [text] 参数“{ $name }”最多 { $allowed } 字节，且不得包含空字符。
       *[values] 参数“{ $name }”只接受：{ $allowed }。
    }
    .about = “detail”中指出的参数的值不被允许，或出现了两次。允许的取值见“detail”。
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_duplicated = 参数重复
    .detail = 参数“{ $name }”只能出现一次。
    .about = “detail”中指出的参数只能出现一次：“time”、“sign”、供浏览器访问的路径上的“app”，或登录回调的参数。
    .page-title = { page_link_title }
    .page = { page_link_detail }
header_duplicated = 请求头重复
    .detail = 请求头 { $name } 只能出现一次。
    .about = “detail”中指出的请求头只能出现一次。
    .page-title = 请求在途中被改动
    .page = 请求可能被浏览器扩展或代理改动。请将其关闭，返回应用后重试。
body_not_allowed = 此处不允许请求体
    .detail = GET 请求没有请求体。请把参数放在查询字符串中，或改用 POST。
    .page-title = { page_link_title }
    .page = { page_link_detail }
app_missing = 未指明应用
    .detail = 请在请求头 { $name } 中发送您的应用标识。
    .page-title = { page_link_title }
    .page = { page_link_detail }
    .developer = 链接中须加入参与签名的查询参数“app”。
version_contradictory = 请求指定了两个版本
    .detail = 路径或主机属于版本 { $placed }，但请求要求另一个版本。请只指定一个版本。
    .about = 版本请求头、主机和路径开头指定了不同的版本。请只指定一个版本。
version_unknown = 没有这个版本
    .detail = 可用的版本：{ $versions }。
    .about = 请求头中的版本不存在。可用的版本见“detail”。
    .page-title = { page_link_title }
    .page = { page_link_detail }
time_invalid = 时间无效
    .detail = “time”必须是自 1970 年起的 UTC 毫秒数，以十进制数字表示。
    .page-title = { page_link_title }
    .page = { page_link_detail }
login_mismatch = 此页面已失效
    .detail = 此登录已被再次打开，或在另一个浏览器中打开。请返回应用重新开始，并且只使用一个窗口。
authorization_missing = 您尚未登录
    .detail = 此请求需要在请求头 { $name } 中携带登录返回的“authorization”。
    .page = 请返回应用并登录。
authorization_invalid = 您的登录已失效
    .detail = 请求头 { $name } 中的凭据不存在、已过期、已失效，或属于其他应用。请重新登录。
    .page = 请重新登录。
authorization_malformed = 凭据格式错误
    .detail = 请求头 { $name } 的值应为登录返回的“authorization”：43 个 base64url 字符，前面可加“Bearer ”。常见原因：值被截断、带有引号、使用了“Basic”、“Bearer”重复，或值为“undefined”或“null”。
    .page = 请返回应用并重新登录。
time_missing = 缺少时间
    .detail = 带参数的请求需要“time”（毫秒）和“sign”。
    .page-title = { page_link_title }
    .page = { page_link_detail }
time_out_of_window = 时间偏差过大
    .detail = “time”与服务器时钟最多相差 { $window } 秒。请检查设备的时钟。
    .about = “time”与服务器时钟相差过大；“server_time”是以毫秒表示的服务器时间。请据此校正时间，然后重新签名。
    .page-title = 此链接已过期
    .page = 链接只在短时间内有效。请返回应用重新开始。
    .developer = 请在浏览器打开链接之前才生成签名；若仍出错，请检查时钟。
sign_missing = 缺少签名
    .detail = 此请求必须签名：需要“time”和“sign”。
    .page-title = { page_link_title }
    .page = { page_link_detail }
sign_mismatch = 签名不匹配
    .detail = “sign”的值与这些参数和此应用的密钥不匹配。
    .page-title = { page_link_title }
    .page = { page_link_detail }
prefetch_refused = 登录页面不能预加载
    .detail = 请求表明自己是预加载，但登录的地址只能使用一次。不带该请求头的同样请求会得到处理。
    .page = 此页面仅在您打开时加载。请返回并重新打开链接。
app_disabled = 应用已停用
    .detail = 请联系服务的运营者启用它。
    .page-title = 此应用目前无法使用
    .page = 此处已停用该应用的登录。请咨询应用的开发者。
login_denied = 登录被拒绝
    .detail = 没有任何人登录：授权在登录提供方处被拒绝，或登录已被取消。如需登录，请返回应用重新开始。
network_mismatch = 此次登录是在另一个网络中发起的
    .detail = 这里只允许在发起登录的网络中确认登录。请返回应用，让应用所在的设备和此浏览器使用同一网络，然后重新开始。如果此次登录不是由您本人发起，请关闭此页面。
return_to_not_allowed = 不允许的返回地址
    .detail = “return_to”必须是为该应用登记的来源下的 http 或 https 地址，且不含片段（“#”）。
    .page-title = { page_link_title }
    .page = { page_link_detail }
gateway_required = 此处只接受网关的请求
    .detail = 请把请求发送到网关的地址。
    .page-title = { page_link_title }
    .page = { page_link_detail }
app_not_found = 没有这个应用
    .detail = 请检查应用标识。
    .page-title = { page_link_title }
    .page = { page_link_detail }
    .developer = 请检查参与签名的查询参数“app”。
not_found = 没有这个接口
    .detail = 请检查请求的路径。
    .page-title = 此处没有页面
    .page = 请返回应用后重试。
login_unknown = 找不到此登录
    .detail = 它从未开始、早已结束，或属于另一个应用。
    .page-title = 此登录已不存在
    .page = 链接不完整，或此登录早已结束。请返回应用重新开始。
https_required = 此调用需要使用 https
    .detail = 签名、凭据或表单未经加密就已发送，网络中的其他人可能已经读到。请发送到 https 地址。如果其中有凭据，请让用户退出登录后重新登录。
    .page-title = { page_link_title }
    .page = { page_link_detail }
upgrade_not_supported = 不支持切换协议
    .detail = Upgrade 请求头要求使用其他协议，例如 WebSocket。此网关只提供 HTTP。请求没有被转发。
    .page-title = { page_link_title }
    .page = { page_link_detail }
method_not_allowed = 不允许的请求方法
    .detail =
        { $scope ->
            [gateway] 此网关只接受 { $methods }。
           *[path] 此路径只接受 { $methods }。
        }
    .about = 此路径不接受该请求方法。可用的方法见“detail”和 Allow 响应头。
    .page-title = { page_link_title }
    .page = { page_link_detail }
request_timeout = 请求超时
    .detail = 请求头和请求体必须各在 { $seconds } 秒内到达。
    .about = 请求头或请求体未及时到达。请求未被转发。
    .page = 请求到达得太慢。请检查网络连接后重试。
request_replayed = 此请求已经收到过
    .detail = 请为每个请求重新签名：一个签名只接受一次。
    .page-title = 此链接已被使用
    .page = 链接只能使用一次。请返回应用重新开始。
    .developer = 一个签名只接受一次。
login_pending = 登录尚未完成
    .detail = 请先在浏览器中完成登录。
login_used = 此登录已被使用
    .detail = 此登录已有结果，结果不变。如有需要，请重新登录。
    .page-title = 此登录已经结束
    .page = 它先前已完成或取消，可能是在另一个窗口中。如果您尚未登录，请返回应用重新开始。
idempotency_conflict = 此幂等键已被使用
    .detail = 此键已用于其他内容。请为每个新事件或请求使用新的键。
version_retired = 此版本已停止服务
    .detail =
        { $scope ->
            [endpoint] 只有此路径停止服务，该版本的其他路径不受影响。
           *[version] { "" }
        }{ $versions ->
            [none] 请向服务的运营者询问应使用的版本。
           *[other] 请改用以下版本之一：{ $versions }。
        }
    .about = 此版本已停止服务。请改用“detail”中列出的版本。
    .page-title = 此应用的版本过旧
    .page = 该应用使用的服务版本已不存在。请检查应用是否有更新。
login_expired = 登录已过期
    .detail = 耗时过长。请返回应用重新开始。
body_too_large = 请求体过大
    .detail = 最多接受 { $limit } 字节。
    .about = 表单超过“detail”中给出的上限。
    .page-title = { page_link_title }
    .page = { page_link_detail }
uri_too_long = 查询字符串过长
    .detail = 最多接受 { $limit } 字节。较长的值请用 POST 表单发送。
    .about = 查询字符串超过“detail”中给出的上限。较长的值请用 POST 表单发送。
    .page-title = { page_link_title }
    .page = { page_link_detail }
content_type_unsupported = 不支持的内容类型
    .detail =
        { $kind ->
            [api] 请以 { $allowed } 发送正文。
           *[form] 请求体请使用 UTF-8 的 application/x-www-form-urlencoded，不要使用内容编码。
        }
    .page-title = { page_link_title }
    .page = { page_link_detail }
rate_limited = 请求过多
    .detail =
        { $limit ->
            [app] 该应用的请求已达到上限。请按 Retry-After 响应头给出的时间等待后再试。
            [address] 您的网络地址的请求已达到上限。请按 Retry-After 响应头给出的时间等待后再试。
            [path] 该路径的请求已达到上限。请按 Retry-After 响应头给出的时间等待后再试。
           *[other] 请按 Retry-After 响应头给出的时间等待后再试。
        }
    .page = 请稍后再试。
headers_too_large = 请求头过大
    .detail = 请求行和请求头合计最多 { $limit } 字节，请求头最多 { $count } 个。
    .about = 请求行和请求头超过“detail”中给出的上限。
    .page-title = 浏览器发送的数据过多
    .page = 请删除此网站的 Cookie 后重试。
internal = 我们这边出了问题
    .detail = 请稍后再试。如果问题持续，请报告请求编号。
backend_unreachable = 无法连接服务
    .detail = 请稍后再试。
bridge_failed = 无法应用两个版本之间的变更
    .detail = 变更 {$change} 不适用于此次调用。请把 request_id 告诉运营人员。
    .about = 运营人员描述了两个版本之间的差异，其中一项变更不适用于此次调用。请把 request_id 告诉运营人员。
provider_failed = 登录提供方出错
    .detail = 提供方没有返回可用的响应。请稍后重新登录。
    .page = 没有任何人登录。请稍后返回应用重新开始。
spool_full = 没有空间存放请求体
    .detail = 请稍后再试。
    .about = 较大的请求体在验证之前存放在一个目录中，该目录已满。没有转发任何内容。
no_healthy_backend = 服务已中断
    .detail = 请稍后再试。
version_brownout = 此版本暂时关闭
    .detail =
        { $scope ->
            [endpoint] 仅涉及此路径，该版本的其他路径不受影响。
           *[version] { "" }
        }{ $versions ->
            [none] 此版本计划停止服务。在此之前，请在 Retry-After 响应头给出的时间后重试。
           *[other] 此版本计划停止服务，请改用以下版本之一：{ $versions }。在此之前，请在 Retry-After 响应头给出的时间后重试。
        }
    .about = 此版本计划停止服务，现暂时关闭以提醒其客户端。请改用“detail”中列出的版本。在此之前，请在 Retry-After 响应头给出的时间后重试。
    .page-title = 暂时无法使用
    .page = 该应用使用的服务版本即将停止服务，目前暂时关闭。请检查应用是否有更新，或稍后重试。
store_unavailable = 服务暂时不可用
    .detail = 无法连接其数据库。请稍后再试。
    .page = 请稍后再试。
backend_timeout = 服务未及时响应
    .detail = 请稍后再试。
gateway_stopping = 服务正在重启
    .detail = 请求可能已被执行。请先确认，再重新发送。
    .page = 请返回应用，查看是否已登录。如果尚未登录，请重新开始。
provider_timeout = 登录提供方未及时响应
    .detail = 没有任何人登录。请稍后返回应用重新开始。

## Management API

request_malformed = 无法读取该请求
    .detail = { $problem }
nothing_to_change = 没有要更改的内容
    .detail = 请至少给出一项设置。
token_missing = 需要令牌
    .detail = 请在 Authorization: Bearer 标头中发送令牌。命令 "signpost token create" 可创建令牌。
token_invalid = 令牌无效
    .detail = 令牌未知、已过期或已被吊销。请向管理员申请新令牌。
account_not_found = 没有该账号
    .detail = 请检查 provider 和 username。用户登录过一次后，账号才会存在。
token_not_found = 没有该令牌
    .detail = 请检查令牌的编号。
token_taken = 已有同名的令牌
    .detail = 请选择其他名称，或先吊销该令牌。
role_insufficient = 令牌的角色不允许此操作
    .detail = 令牌的角色是 { $role }；此调用需要 { $needed }。
cross_site = 其他网站的页面不得调用
    .detail = 请从程序或此地址的页面调用。
app_taken = 已有使用此标识的应用
    .detail = 未作任何更改。请选择其他标识。
overlap_running = 上一个密钥仍然有效
    .detail = 它还将有效 { $minutes } 分钟。请等待，或通过 end-overlap 结束其有效期。
not_drained = 该地址未被摘除
    .detail = 运维人员没有摘除此后端的这个地址，或摘除时间已结束。
revision_stale = 期间已被更改
    .detail = 未作任何更改。其当前修订号为 { $revision }：请重新读取后再决定。
revision_missing = 更改未指明修订号
    .detail = 请在 If-Match 标头中或以正文的 "revision" 发送您读取的修订号。
import_invalid = 文件存在问题
    .detail = 未导入任何内容。"problems" 按行列出这些问题。
config_invalid = 配置文件存在问题
    .detail = 未作任何更改。"problems" 列出这些问题。
report_too_large = 报告过大
    .detail = 应用过多，无法放入一个响应。请在网关所在的机器上使用命令 "signpost versions report"。
idempotency_unfinished = 首个请求的结果未知
    .detail = 使用此幂等键的请求正在执行或已中断。请读取它本应更改的内容，然后发送新的键。
address_not_found = 没有该地址
    .detail = 没有具有此名称和此地址的后端。
last_address = 这是该后端的最后一个地址
    .detail = 未作任何更改：没有它，后端将不可用。如确需如此，请发送 "force"。

## Hints

hint_seconds = 是秒吗？“time”必须以毫秒为单位。
hint_microseconds = 是微秒吗？“time”必须以毫秒为单位。
hint_nanoseconds = 是纳秒吗？“time”必须以毫秒为单位，例如 1732104000000。
hint_time_fraction = “time”带有小数或指数；请发送整数毫秒，例如 1732104000000。
hint_time_quoted = “time”两端有引号或空白字符；请只发送数字，例如 1732104000000。
hint_time_text = “time”是日期文本；请用数字发送自 1970-01-01 00:00 UTC 起的毫秒数，例如 1732104000000。
hint_local_time = “time”与网关时钟相差 { $offset }。是否把本地时间当作了 UTC，或把 UTC 当作了本地时间？请发送自 1970-01-01 00:00 UTC 起的毫秒数。
hint_not_searched = 未查找原因：这一秒内错误签名过多。请一秒后重试。
hint_too_large = 未查找原因：路径和参数超过 8 KiB。请用同一程序发送较小的请求，以查明原因。
hint_unsorted = 签名前没有按参数名排序。
hint_empty_dropped = 空值的参数被略去了；此应用的规则要求它们也参与签名。
hint_empty_kept = 空值的参数参与了签名；此应用的规则要求略去它们。
hint_decoded = 签名用的是解码后的值；此应用按发送时的原样对参数名和值签名。
hint_encoded = 签名用的是发送时的形式或百分号编码的值；此应用对解码后的值签名。请求中的“+”表示空格：加号请发送为“%2B”。
hint_key_labelled = 密钥前加了“&key=”：拼接为 { $found }，应为 { $rule }。
hint_key_not_labelled = 密钥前缺少“&key=”：拼接为 { $found }，应为 { $rule }。
hint_key_in_front = 密钥放在了最前面：拼接为 { $found }，应为 { $rule }。
hint_layout = 参数名、值和密钥拼接为 { $found }；此应用的拼接方式为 { $rule }。
hint_trailing_newline = 签名文本或密钥以换行符结尾；请去掉它，例如从文件读取的密钥末尾的换行符。
hint_escape_case = 签名时百分号编码的大小写与发送时不同；请按发送时的原样签名。
hint_cover = { $found ->
    [request] 签名文本缺少方法和路径；此应用的规则要求将其放在参数之前（cover = request）：方法、换行符、路径、换行符。
    [address] 签名文本包含地址或路径；此应用的规则只对参数签名，不含方法、协议、主机、路径和“?”（cover = parameters）。
   *[parameters] 签名文本包含方法和路径；此应用的规则只对参数签名（cover = parameters）。
}
hint_algorithm = { $found ->
    [none] 此应用使用 { $rule }，签名为 { $digits } 位十六进制数字；请求中“sign”的长度属于其他算法。
   *[other] 请求使用 { $found } 签名；此应用使用 { $rule }。
}
hint_hmac_hash = 请求使用 { $found } 签名；此应用使用 { $rule }。
hint_time_not_signed = “time”没有参与签名；它和其他参数一样必须参与签名。
hint_space_as_escape = 空格发送为“+”，签名时却写成“%20”；请按发送时的原样签名。
hint_space_as_plus = 空格发送为“%20”，签名时却写成“+”；请按发送时的原样签名。
hint_query_left_out = 查询字符串中的参数没有参与签名；请把查询字符串和表单的参数一起签名。
hint_preset = 请求按预设“{ $preset }”的规则签名，而此应用使用的不是该预设。{ $preset ->
    [decoded] 该预设对解码后的值签名。
    [alipay] 该预设对解码后的值签名，略去空值和“sign_type”。
    [wechat] 该预设对解码后的值签名，略去空值，并在密钥前加“&key=”。
    [top] 该预设对解码后的值签名，略去空值，拼接为 KEYa1b2KEY。
   *[other] {""}
}
hint_previous_key = 请求用旧密钥签名，旧密钥已失效。
hint_encoded_differently = 参数“{ $key }”中，签名的是“{ $signed }”，发送的却是“{ $sent }”。请只编码一次，并对实际发送的内容签名。{ $form ->
    [raw] 签名时没有编码，或使用了 { $function } 之类的函数。
   *[encoded] 两处使用了不同的编码函数（例如 { $function } 会产生签名的形式）。
}
hint_encoded_twice = 请求与签名文本相差一次百分号编码，像是某个值在其中一处被编码了两次。请只编码一次，并对实际发送的内容签名。
hint_order = 请按解码后的名称逐字节升序排序；同名参数保持发送时的顺序。{ $found ->
    [value-too] 同名参数又按值排序了。
    [pair] 参数对连同“=”和值整体排序了。
    [value] 参数按值排序了。
    [ignoring-case] 参数排序时忽略了大小写。
    [descending] 参数按降序排序了。
   *[utf-16] 参数按 UTF-16 排序了。
}
hint_key_missing = 签名文本不含密钥；请按此应用的规则加入密钥。
hint_key_in_text = 签名文本中含有密钥：拼接为 { $found }，应为 { $rule }。使用 HMAC 时，此应用的密钥只用作哈希函数的密钥。
hint_key_form = 请原样使用签发的密钥文本的字节。{ $found ->
    [hex] 密钥按十六进制解码了。
    [base64] 密钥按 base64 解码了。
    [case] 密钥的大小写被改变了。
    [quotes] 密钥加了引号。
    [bom] 密钥之前有字节顺序标记。
    [cut] 密钥被截去了一部分。
    [unread] 把占位符或缺失的值（例如“undefined”）当作了密钥。
    [swapped] HMAC 的密钥与文本颠倒了。
   *[space] 密钥之前或之后有空格。
}
hint_stray_separator = 签名文本在参数之前有多余的“?”或“&”，或在参数之后有多余的“&”。
hint_cover_form = 方法和路径未按此应用的要求签名：参数之前应依次是大写的方法、换行符、按发送原样且不含协议、主机和查询串的路径、换行符。
hint_sign_form = { $found ->
    [base64] “sign”像是 base64；此应用使用 { $rule } 的十六进制形式，共 { $digits } 位。
    [cut] “sign”只有 16 位十六进制数字，像是截短的 MD5；此应用使用 { $rule }，共 { $digits } 位十六进制数字。
    [around] “sign”的十六进制数字之间或前后有其他字符，例如 md5sum 的输出或连字符；此应用使用 { $rule }，只能有 { $digits } 位十六进制数字。
    [short] “sign”的十六进制数字太少：丢失了零，例如把哈希当作整数输出，或某个字节只写了一位。每个字节应写两位；此应用使用 { $rule }，共 { $digits } 位十六进制数字。
   *[other] “sign”不是哈希值的十六进制形式；此应用使用 { $rule }，共 { $digits } 位十六进制数字。
}
hint_param_signed = 参数“{ $key }”参与了签名；此应用的规则要求将其排除。
hint_param_not_signed = 参数“{ $key }”未参与签名；此应用的规则要求像其他参数一样签名。
hint_json = 参数以 JSON 形式签名；请对实际发送的键值对按此应用的规则拼接后签名。
hint_key_or_value = 没有常见错误能解释此签名。请将程序签名的文本与实际发送的字节对照，再与此响应中的“canonical”或“signpost sign --canonical”输出的文本对照；然后检查使用的是哪个应用的密钥。
hint_version_in_path = 版本不是路径的一部分。请发送路径“{ $path }”，并加上请求头“{ $name }: { $version }”。
hint_missing_value = 缺失的值签名时写成“{ $found }”，发送时却写成“{ $rule }”。请略去此类参数，或对实际发送的内容签名。
hint_value_changed = 请每个值只生成一次，并对实际发送的内容签名。{ $found ->
    [trimmed] 名称或值首尾的空白字符被发送，却没有参与签名。
    [html] HTML 实体（例如用“&amp;”表示“&”）只出现在签名文本或请求其中之一。
    [unicode] 签名文本与发送内容的字符相同，但 Unicode 规范化形式不同，例如 NFC 与 NFD。
    [number] 数字签名时的写法与发送时不同，例如“1.0”与“1”。
    [boolean] 布尔值签名时的写法与发送时不同，例如“True”或“1”与“true”。
    [brackets] 签名时去掉了参数名的方括号，发送时却带有，例如“tag”与“tag[0]”。
    [lines] 换行符签名时与发送时不同：单独的 LF，或 CR LF。
    [json] 值中的 JSON 生成了两次，写法不同：空格或“\/”。
    [once] 多个同名参数中只有一个参与了签名：映射或字典只保留一个。
    [joined] 多个同名参数被用逗号连接成一个来签名。
    [text] 计算哈希前，整个文本被改成了小写或大写；只有“sign”的十六进制数字可用任意大小写。
    [time] 签名的“time”与发送的不同：相差几毫秒，或以秒为单位。每个请求只读取一次时钟。
    [nothing] 没有任何参数参与签名：可能在设置参数之前就生成了文本，或请求体已被读取过。
    [spaces] 签名前去掉了名称和值中的空格。
   *[letters] 名称和值签名时被改为小写或大写，与发送时不同。
}
hint_form_left_out = 表单中的参数没有参与签名；请把查询字符串和表单的参数一起签名。
hint_key_sent = 密钥本身被发送了。您的密钥现在已出现在地址或表单中，也可能在日志中：请轮换它。密钥只用于签名，绝不发送。
hint_body_unsigned = 参数签名不包含这种请求体。请在请求头中签名：时间、签名，以及可选的随机数。
hint_headers_missing = 此请求在请求头中签名：时间在“…-X-Time”，签名在“…-X-Sign”。
hint_in_parameters = “{ $found }”作为参数发送了。此应用在请求头中签名。
hint_line = { $found ->
    [method] 签名时方法的大小写不同。
    [path] 签名的目标缺少查询字符串；应为实际发送的路径和查询字符串。
    [address] 签名的目标包含协议或主机；应为实际发送的路径和查询字符串。
    [empty] 签名时使用了空请求体的散列值。
    [digits] 请求体的散列值没有按 64 位小写十六进制签名。
    [body] 签名了请求体本身；最后一行应为其 SHA-256 的十六进制。
    [nonce] 缺少随机数那一行；没有随机数时该行为空。
   *[key] 密钥那一行不同：md5 在文本末尾有密钥，hmac-sha256 没有。
}
hint_in_header = “{ $found }”作为请求头发送了。请把“time”和“sign”作为参数，放在查询字符串或表单中发送。
hint_misnamed = 发送的参数名是“{ $key }”。名称必须正是小写的“time”和“sign”。如果前面有“amp;”，说明地址中用“&amp;”代替了“&”。
hint_app_empty = 应用标识为空。请检查程序是否读到了它的设置。
hint_app_key = 作为应用标识发送的内容像是密钥或凭证。请在那里发送应用标识。密钥只用于签名，绝不发送：如果那是您的密钥，它现在可能已在日志中，请轮换它。
hint_app_unread = 把占位符或缺失的值（例如“undefined”）当作应用标识发送了。请检查程序是否读到了它的设置。
hint_app_character = 应用标识不会有这样的字符：只允许 A-Z、a-z、0-9、“.”、“_”和“-”。常见原因：引号、空格、占位符的括号，或把应用名称当作了标识。
hint_app_length = 生成的应用标识有 24 个字符，任何标识都不超过 64 个；这个太短或太长。是否复制完整？
hint_app_unknown = 应用标识的形式没有问题，但此网关没有这个应用。大小写有区别。它是否属于另一个环境？
hint_app_in_query = 参数“app”只在供浏览器使用的路径上表示应用。请在请求头中发送应用标识。
hint_path = 是否指“{ $path }”？路径的大小写、每个斜杠和扩展名都有区别，前面也不能有其他内容。
hint_charset = 参数名或值含有 ASCII 以外的字符：签名和发送时都请使用 UTF-8 编码，而不是 GBK 等编码。
hint_cover_rule = 此应用还要求在参数之前依次签名：大写的方法、换行符、按发送原样的路径（不含协议、主机和查询字符串）、换行符。

## Sign Doctor

doctor_old = 此请求已过去 { $what }。现在发送会因过期而被拒绝；这不算作错误。如果它是刚刚生成的，说明客户端的时钟慢了。
doctor_other_app = 请求中的应用与另外给出的 { $what } 不同。
doctor_completed = 此处的行没有回车符。已补全行尾、结尾空行和缺少的 Content-Length。
doctor_http2 = 此请求属于 HTTP/2 或 HTTP/3，已按含义相同的 HTTP/1.1 请求检查。
doctor_host = 不知道请求发往哪个主机，已采用 public_url 的主机。
doctor_unread = 以下部分未被读取：{ $what }
doctor_left = 请求之后还有 { $what } 个字节。按其 Content-Length 或分块，它们不属于此请求，网关会将其视为下一个请求。
doctor_body = 没有粘贴正文，因此未检查表单、参数、签名及后续步骤。
doctor_not_http = 网关以不带正文的 400 响应，因为这不是 RFC 9112 所规定的 HTTP：{ $what }。
doctor_unreached = 未检查后续步骤。
doctor_credential = 未检查凭证。
doctor_unchecked = 未检查：请求是否重复、速率限制、TLS 和到 https 的重定向、网关前面的代理，以及后端。

## Pages and login

page_confirm_title = 登录 { $application }
page_confirm_compare = 请核对此处的核对码与 { $application } 显示的是否一致：
page_confirm_code = 核对码
page_confirm_warning = 仅当此次登录由您本人发起且两处核对码一致时才继续。
page_confirm_begun = 此次登录于 { $minutes } 分钟前在网络 { $network } 中发起。
page_confirm_network = 您的浏览器在另一个网络中。如果 { $application } 运行在服务器上或使用其他连接，这是正常的。如果此次登录不是由您本人发起，请取消。
page_confirm_button = 核对码一致：通过 { $provider } 登录
page_confirm_cancel = 不是我发起的：取消此次登录
page_choose_button = 通过 { $provider } 登录
page_again_title = 登录提供方暂时不可用
page_again_wait = 此次登录仍然有效，请稍后再试。
page_again_button = 重试
page_cancelled_title = 登录已取消
page_cancelled_close = 没有任何人登录。您可以关闭此窗口。
page_late_title = 此登录此前已经完成
page_late_warning = 现在无法取消。如果登录不是您本人发起的，可能有人正以您的名义登录 { $application }。请立即告知 { $application }。
page_done_title = 您已登录
page_done_close = 您可以关闭此窗口，返回 { $application }。
page_finishing_title = 正在完成登录
page_finishing_wait = 请稍候，此页面将在几秒后自动继续。
page_finished_title = 此次登录已完成
page_finished_link = 返回 { $application }
page_link_title = 此链接无法使用
page_link_detail = 应用生成的链接不被此服务接受。请返回应用重新开始。若仍出错，请将以下信息发给应用的开发者。
page_problem_code = 错误码
page_problem_status = HTTP 状态码
page_problem_retry = 重试是否有用
    .no = 否。同样的请求会再次失败。
    .yes = 是。如果响应带有 Retry-After 响应头，请先等待该时间。每次请求都要用当前的“time”重新签名。
    .new-login = 需要重新开始登录。
    .log-in = 用户登录后可以重试。
page_problem_request = 请求编号
page_problem_developer = 供应用的开发者参考
page_problem_link = 更多信息

## Retirement of a version

retire_used = 最近 { $days } 天的请求：{ $number } 个
retire_last_used = 最后一个在 { $at }
retire_users = 应用：{ $number } 个（{ $list }）
retire_extended = 延长使用的应用：{ $number } 个，最晚至 { $at }
retire_used_lately = 最近 { $days } 天发送过请求的应用：{ $number } 个。它们将收到 410。
retire_default = 它是默认版本。
retire_pinned = 以它为默认版本的应用：{ $number } 个
retire_paths = 方法与路径：{ $number } 个（{ $list }）
retire_ending_paths = 有单独日期的路径：{ $list }
retire_compared = 与 { $to } 的响应对：{ $pairs } 对；路径：{ $paths } 个，其中不同：{ $differing } 个
retire_no_proof = 这不构成证明：{ $command }
retire_proven = 客户端使用过的路径：{ $number } 个，其中已证明：{ $proven } 个
retire_unpaired = 没有响应对的请求：{ $list }
retire_few_pairs = 响应对不足的请求：{ $list }
retire_unproven = 未证明：{ $request }（{ $number } 个请求）：{ $reason }
retire_unprovable = 它仍在使用，但既没有桥接，也没有应用变更的影子。
retire_bridged = 桥接到 { $to }，请求：{ $number } 个
retire_not_bridged = 没有桥接
retire_own_backend = 它自己的后端仍在服务：请改用 bridge。
retire_brownouts = 已结束：{ $number } 次
retire_brownouts_ahead = 尚未结束：{ $number } 次（{ $list }）
retire_no_brownout = 还没有结束的暂时关闭。
retire_served = 由它自己的后端服务其请求
retire_served_by_bridge = 由 { $to } 的后端服务其请求
retire_until = 从 { $at } 起请求将收到 410 version_retired
retire_no_end = 没有结束时间
retire_no_sunset = 它没有停服时间。
retire_other_sunset = 它的停服时间是 { $at }：客户端只知道这个日期。
retire_not_deprecated = 它尚未弃用。
retire_more = { $list } 等，另有 { $number } 个
