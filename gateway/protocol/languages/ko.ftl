# Signpost가 보여 주는 모든 글(한국어). 키는 모든 파일에서 같습니다. 오류 코드가 키, 값이 제목, `.detail`이 해결 방법입니다.
# 페이지에서는 대신 `.page-title`과 `.page`를 씁니다. 브라우저 사용자는 요청을 만든 사람이 아닙니다. `.developer`는 `.detail` 대신 개발자에게 보입니다. 셋 다 인수가 없습니다.

## Errors

target_invalid = 요청 주소의 형식이 잘못되었습니다
    .detail = { malformed }
    .about = 요청 대상은 RFC 3986의 경로와 쿼리여야 하고, "%" 뒤에는 16진수 두 자리가 있어야 하며, 유효한 Host 헤더가 정확히 하나 있어야 합니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
target_ambiguous = 경로가 모호합니다
    .detail = 백엔드가 이 경로를 다른 경로로 해석할 수 있습니다. 경로의 { $position }번째 바이트: { $found }. 빈 세그먼트, ".", "..", ";", "\", 인코딩된 "/"나 제어 문자를 쓰지 말고, 세그먼트를 "."나 공백으로 끝내지 말고, UTF-8로 보내십시오.
    .about = 백엔드가 경로를 다른 경로로 해석할 수 있습니다. 경로에는 빈 세그먼트, ".", "..", ";", "\", 인코딩된 "/"나 제어 문자, "."나 공백으로 끝나는 세그먼트가 없어야 하고, UTF-8이어야 합니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
params_malformed = 매개변수의 형식이 잘못되었습니다
    .detail = { malformed }
    .about = 쿼리나 폼에 잘못된 퍼센트 인코딩, 인코딩해야 하는 문자, 또는 UTF-8이 아닌 바이트가 있습니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
malformed = { $fault ->
        [character] { malformed_place }: 그대로 쓸 수 없는 문자 { $found }. 퍼센트 인코딩하십시오.
        [escape] { malformed_place }: "%" 뒤에 16진수 두 자리가 없습니다.
        [encoding] { malformed_place }: UTF-8이 아닙니다.
        [gbk] { malformed_place }: UTF-8이 아니라 GBK 또는 GB18030으로 보입니다. 텍스트를 UTF-8로 인코딩하십시오.
        [slash] 요청 대상은 "/"로 시작해야 합니다. 스킴과 호스트는 넣지 말고, 호스트는 Host 헤더에 쓰십시오.
        [hosts] Host 헤더는 정확히 하나여야 합니다.
       *[other] 요청 대상, 스킴 또는 Host 헤더의 형식이 잘못되었습니다.
    }
malformed_place = { $place ->
        [path] 경로의 { $position }번째 바이트
        [host] Host의 { $position }번째 바이트
        [query] 쿼리의 { $position }번째 바이트
        [query_parameter] 쿼리의 { $position }번째 바이트, 매개변수 "{ $name }"
        [form] 폼의 { $position }번째 바이트
       *[form_parameter] 폼의 { $position }번째 바이트, 매개변수 "{ $name }"
    }
params_too_many = 매개변수가 너무 많습니다
    .detail = 매개변수는 { $limit }개까지 받습니다.
    .about = 요청의 매개변수 수가 한도(기본값 256개)를 넘습니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_missing = 매개변수가 없습니다
    .detail = 다음 매개변수가 필요합니다: "{ $name }".
    .about = "detail"에 표시된 매개변수가 필요합니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_invalid = 매개변수가 올바르지 않습니다
    .detail = { $rule ->
        [once] 다음 매개변수는 한 번만 쓸 수 있습니다: "{ $name }".
        [only_one] 다음 매개변수 중 하나만 쓸 수 있습니다: { $allowed }.
        [text] 매개변수 "{ $name }"의 값은 { $allowed }바이트까지이며 널 문자를 포함할 수 없습니다.
       *[values] 매개변수 "{ $name }"에 쓸 수 있는 값: { $allowed }.
    }
    .about = "detail"에 표시된 매개변수의 값이 허용되지 않거나 두 번 쓰였습니다. 쓸 수 있는 값은 "detail"에 있습니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
param_duplicated = 매개변수가 중복되었습니다
    .detail = 다음 매개변수는 한 번만 쓸 수 있습니다: "{ $name }".
    .about = "detail"에 표시된 매개변수는 한 번만 쓸 수 있습니다. "time", "sign", 브라우저용 경로의 "app", 또는 로그인 콜백의 매개변수가 해당합니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
header_duplicated = 헤더가 중복되었습니다
    .detail = 다음 헤더는 한 번만 쓸 수 있습니다: { $name }.
    .about = "detail"에 표시된 헤더는 한 번만 쓸 수 있습니다.
    .page-title = 요청이 전송 중에 변경되었습니다
    .page = 브라우저 확장 프로그램이나 프록시가 요청을 바꾸었을 수 있습니다. 이를 끄고 애플리케이션으로 돌아가 다시 시도하세요.
body_not_allowed = 여기에는 본문을 보낼 수 없습니다
    .detail = GET 요청에는 본문이 없습니다. 매개변수를 쿼리로 보내거나 POST를 쓰세요.
    .page-title = { page_link_title }
    .page = { page_link_detail }
app_missing = 애플리케이션이 지정되지 않았습니다
    .detail = 헤더 { $name }에 애플리케이션 식별자를 담아 보내세요.
    .page-title = { page_link_title }
    .page = { page_link_detail }
    .developer = 서명에 포함된 쿼리 매개변수 "app"을 링크에 추가하세요.
version_contradictory = 두 버전이 지정되었습니다
    .detail = 경로나 호스트는 버전 { $placed }의 것이지만 요청은 다른 버전을 요구합니다. 버전을 하나만 지정하세요.
    .about = 버전 헤더, 호스트, 경로의 시작이 서로 다른 버전을 가리킵니다. 버전을 하나만 지정하세요.
version_unknown = 해당 버전을 찾을 수 없습니다
    .detail = 사용할 수 있는 버전: { $versions }.
    .about = 헤더에 지정한 버전이 없습니다. 사용할 수 있는 버전은 "detail"에 있습니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
time_invalid = 시간이 올바르지 않습니다
    .detail = "time"은 1970년부터의 UTC 밀리초를 십진 숫자로 쓴 것이어야 합니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
login_mismatch = 이 페이지는 더 이상 유효하지 않습니다
    .detail = 로그인 페이지가 다시 열렸거나 다른 브라우저에서 열렸습니다. 애플리케이션으로 돌아가 한 창에서만 다시 시작하세요.
authorization_missing = 로그인하지 않았습니다
    .detail = 이 요청에는 로그인으로 받은 "authorization"을 { $name } 헤더에 넣어야 합니다.
    .page = 애플리케이션으로 돌아가 로그인하세요.
authorization_invalid = 로그인이 더 이상 유효하지 않습니다
    .detail = { $name } 헤더의 인증 정보를 알 수 없거나, 만료 또는 종료되었거나, 다른 애플리케이션의 것입니다. 다시 로그인하세요.
    .page = 다시 로그인하세요.
authorization_malformed = 인증 정보의 형식이 잘못되었습니다
    .detail = { $name } 헤더에는 로그인으로 받은 "authorization"을 넣습니다. base64url 43자이며, 앞에 "Bearer "를 붙여도 됩니다. 흔한 원인: 잘린 값, 따옴표, "Basic", 두 번 붙은 "Bearer", "undefined"나 "null"이라는 문자열.
    .page = 애플리케이션으로 돌아가 다시 로그인하세요.
time_missing = 시간 값이 없습니다
    .detail = 매개변수가 있는 요청에는 "time"(밀리초)과 "sign"이 필요합니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
time_out_of_window = 시간 차이가 너무 큽니다
    .detail = "time"은 서버 시계와 최대 { $window }초까지 다를 수 있습니다. 기기의 시계를 확인하세요.
    .about = "time"이 서버 시계와 너무 많이 다릅니다. "server_time"은 밀리초로 나타낸 서버 시간입니다. 이 값으로 시간을 보정한 뒤 다시 서명하세요.
    .page-title = 링크가 만료되었습니다
    .page = 이 링크는 짧은 시간 동안만 유효합니다. 애플리케이션으로 돌아가 다시 시작하세요.
    .developer = 서명된 링크는 브라우저가 열기 직전에 만드세요. 그래도 해결되지 않으면 시계를 확인하세요.
sign_missing = 서명이 없습니다
    .detail = 이 요청은 서명해야 합니다. "time"과 "sign"이 필요합니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
sign_mismatch = 서명이 일치하지 않습니다
    .detail = "sign"의 값이 이 매개변수들과 이 애플리케이션의 키에 맞지 않습니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
prefetch_refused = 로그인 페이지는 미리 불러올 수 없습니다
    .detail = 요청이 미리 불러오기라고 표시되어 있지만, 로그인 주소는 한 번만 사용할 수 있습니다. 그 헤더가 없는 같은 요청은 처리됩니다.
    .page = 이 페이지는 열 때만 불러옵니다. 돌아가서 링크를 다시 여세요.
app_disabled = 애플리케이션이 비활성화되었습니다
    .detail = 서비스 운영자에게 활성화를 요청하세요.
    .page-title = 지금은 이 애플리케이션을 사용할 수 없습니다
    .page = 이 애플리케이션의 로그인이 중지되어 있습니다. 애플리케이션 제작자에게 문의하세요.
login_denied = 로그인이 거부되었습니다
    .detail = 제공자에서 접근이 거부되었거나 로그인이 취소되어 아무도 로그인되지 않았습니다. 로그인하려면 애플리케이션으로 돌아가 다시 시작하세요.
network_mismatch = 이 로그인은 다른 네트워크에서 시작되었습니다
    .detail = 여기에서는 로그인이 시작된 네트워크에서만 로그인을 확인할 수 있습니다. 애플리케이션의 기기와 이 브라우저를 같은 네트워크에 연결하고 애플리케이션에서 다시 시작하세요. 직접 시작한 로그인이 아니면 이 페이지를 닫으세요.
return_to_not_allowed = 돌아갈 주소가 허용되지 않습니다
    .detail = "return_to"는 애플리케이션에 등록된 출처의 http 또는 https 주소여야 하며, 프래그먼트("#")가 없어야 합니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
gateway_required = 여기서는 게이트웨이의 요청만 받습니다
    .detail = 요청을 게이트웨이 주소로 보내세요.
    .page-title = { page_link_title }
    .page = { page_link_detail }
app_not_found = 해당 애플리케이션을 찾을 수 없습니다
    .detail = 애플리케이션 식별자를 확인하세요.
    .page-title = { page_link_title }
    .page = { page_link_detail }
    .developer = 서명에 포함된 쿼리 매개변수 "app"을 확인하세요.
not_found = 해당 엔드포인트를 찾을 수 없습니다
    .detail = 요청 경로를 확인하세요.
    .page-title = 페이지를 찾을 수 없습니다
    .page = 애플리케이션으로 돌아가 다시 시도하세요.
login_unknown = 해당 로그인을 찾을 수 없습니다
    .detail = 시작된 적이 없거나, 오래전에 끝났거나, 다른 애플리케이션의 것입니다.
    .page-title = 더 이상 존재하지 않는 로그인입니다
    .page = 링크가 완전하지 않거나 오래전에 끝난 로그인입니다. 애플리케이션으로 돌아가 다시 시작하세요.
https_required = 이 호출에는 https가 필요합니다
    .detail = 서명, 자격 증명 또는 폼이 암호화되지 않은 채 전송되어 네트워크의 다른 사람이 읽었을 수 있습니다. https 주소로 보내세요. 자격 증명이 있었다면 사용자를 로그아웃한 뒤 다시 로그인하게 하세요.
    .page-title = { page_link_title }
    .page = { page_link_detail }
upgrade_not_supported = 프로토콜 전환은 지원하지 않습니다
    .detail = Upgrade 헤더가 WebSocket 같은 다른 프로토콜을 요청합니다. 이 게이트웨이는 HTTP만 제공합니다. 요청은 전달되지 않았습니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
method_not_allowed = 허용되지 않은 메서드입니다
    .detail =
        { $scope ->
            [gateway] 이 게이트웨이에서는 { $methods } 메서드만 쓸 수 있습니다.
           *[path] 이 경로에는 { $methods } 메서드만 쓸 수 있습니다.
        }
    .about = 이 경로에는 그 메서드를 쓸 수 없습니다. 쓸 수 있는 메서드는 "detail"과 Allow 헤더에 있습니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
request_timeout = 요청이 너무 오래 걸렸습니다
    .detail = 헤더와 본문은 각각 { $seconds }초 안에 도착해야 합니다.
    .about = 헤더나 본문이 제때 도착하지 않았습니다. 요청은 전달되지 않았습니다.
    .page = 요청이 너무 느리게 도착했습니다. 연결을 확인한 뒤 다시 시도하세요.
request_replayed = 이미 받은 요청입니다
    .detail = 요청마다 새로 서명하세요. 서명은 한 번만 받습니다.
    .page-title = 이미 사용된 링크입니다
    .page = 이 링크는 한 번만 사용할 수 있습니다. 애플리케이션으로 돌아가 다시 시작하세요.
    .developer = 서명은 한 번만 받습니다.
login_pending = 로그인이 아직 끝나지 않았습니다
    .detail = 먼저 브라우저에서 끝내세요.
login_used = 이미 사용된 로그인입니다
    .detail = 이 로그인은 이미 결과가 정해졌습니다. 필요하면 새로 로그인하세요.
    .page-title = 이미 끝난 로그인입니다
    .page = 다른 창 등에서 이미 완료되었거나 취소되었습니다. 로그인되어 있지 않다면 애플리케이션으로 돌아가 다시 시작하세요.
idempotency_conflict = 이미 사용된 멱등 키입니다
    .detail = 이 키로 다른 내용이 이미 전송되었습니다. 새 이벤트나 요청마다 새 키를 사용하세요.
version_retired = 이 버전은 종료되었습니다
    .detail =
        { $scope ->
            [endpoint] 이 경로만 종료되었으며 버전 전체가 종료된 것은 아닙니다.{ " " }
           *[version] { "" }
        }{ $versions ->
            [none] 사용할 버전을 서비스 운영자에게 문의하세요.
           *[other] 다음 중 하나로 옮기세요: { $versions }.
        }
    .about = 이 버전은 종료되었습니다. "detail"에 표시된 버전으로 옮기세요.
    .page-title = 오래된 버전의 애플리케이션입니다
    .page = 이 애플리케이션이 사용하는 서비스 버전은 더 이상 제공되지 않습니다. 애플리케이션 업데이트를 확인하세요.
login_expired = 로그인이 만료되었습니다
    .detail = 너무 오래 걸렸습니다. 애플리케이션으로 돌아가 다시 시작하세요.
body_too_large = 본문이 너무 큽니다
    .detail = { $limit }바이트까지 받습니다.
    .about = 폼이 "detail"에 표시된 한도를 넘습니다.
    .page-title = { page_link_title }
    .page = { page_link_detail }
uri_too_long = 쿼리가 너무 깁니다
    .detail = { $limit }바이트까지 받습니다. 긴 값은 POST 폼으로 보내세요.
    .about = 쿼리가 "detail"에 표시된 한도를 넘습니다. 긴 값은 POST 폼으로 보내세요.
    .page-title = { page_link_title }
    .page = { page_link_detail }
content_type_unsupported = 지원하지 않는 콘텐츠 형식입니다
    .detail =
        { $kind ->
            [api] 본문을 { $allowed } 형식으로 보내세요.
           *[form] 본문은 UTF-8의 application/x-www-form-urlencoded로, 콘텐츠 인코딩 없이 보내세요.
        }
    .page-title = { page_link_title }
    .page = { page_link_detail }
rate_limited = 요청이 너무 많습니다
    .detail =
        { $limit ->
            [app] 이 애플리케이션의 요청 한도에 도달했습니다. Retry-After 헤더의 시간만큼 기다린 뒤 다시 시도하세요.
            [address] 이 네트워크 주소의 요청 한도에 도달했습니다. Retry-After 헤더의 시간만큼 기다린 뒤 다시 시도하세요.
            [path] 이 경로의 요청 한도에 도달했습니다. Retry-After 헤더의 시간만큼 기다린 뒤 다시 시도하세요.
           *[other] Retry-After 헤더의 시간만큼 기다린 뒤 다시 시도하세요.
        }
    .page = 잠시 후 다시 시도하세요.
headers_too_large = 헤더가 너무 큽니다
    .detail = 요청 줄과 헤더는 합쳐서 { $limit }바이트까지, 헤더는 { $count }개까지 받습니다.
    .about = 요청 줄과 헤더가 "detail"에 표시된 한도를 넘습니다.
    .page-title = 브라우저가 보낸 데이터가 너무 많습니다
    .page = 이 사이트의 쿠키를 삭제한 뒤 다시 시도하세요.
internal = 저희 쪽에 문제가 생겼습니다
    .detail = 나중에 다시 시도하세요. 계속되면 요청 ID를 알려 주세요.
backend_unreachable = 서비스에 연결할 수 없습니다
    .detail = 잠시 후 다시 시도하세요.
bridge_failed = 두 버전 사이의 변경을 적용할 수 없습니다
    .detail = 이 호출에는 변경 {$change} 적용이 불가능합니다. 운영자에게 request_id 값을 알려 주세요.
    .about = 운영자가 두 버전의 차이를 정의해 두었지만, 그 변경 가운데 하나를 이 호출에 적용할 수 없습니다. 운영자에게 request_id 값을 알려 주세요.
provider_failed = 로그인 제공자에 오류가 있습니다
    .detail = 제공자가 쓸 수 있는 응답을 보내지 않았습니다. 잠시 후 새로 로그인하세요.
    .page = 아무도 로그인되지 않았습니다. 잠시 후 애플리케이션으로 돌아가 다시 시작하세요.
spool_full = 본문을 둘 공간이 없습니다
    .detail = 잠시 후 다시 시도하세요.
    .about = 큰 본문은 검증될 때까지 폴더에 보관되는데 그 폴더가 가득 찼습니다. 아무것도 전달되지 않았습니다.
no_healthy_backend = 서비스가 중단되었습니다
    .detail = 잠시 후 다시 시도하세요.
version_brownout = 이 버전은 잠시 중단되었습니다
    .detail =
        { $scope ->
            [endpoint] 이 경로만 해당하며 버전 전체가 중단된 것은 아닙니다.{ " " }
           *[version] { "" }
        }{ $versions ->
            [none] 이 버전은 종료될 예정입니다. 그때까지는 Retry-After 헤더에 있는 시간이 지난 후 다시 시도하세요.
           *[other] 이 버전은 종료될 예정입니다. 다음 중 하나로 옮기세요: { $versions }. 그때까지는 Retry-After 헤더에 있는 시간이 지난 후 다시 시도하세요.
        }
    .about = 이 버전은 종료될 예정이며, 클라이언트가 알아차릴 수 있도록 잠시 중단되었습니다. "detail"에 표시된 버전으로 옮기세요. 그때까지는 Retry-After 헤더에 있는 시간이 지난 후 다시 시도하세요.
    .page-title = 지금은 이용할 수 없습니다
    .page = 이 애플리케이션이 사용하는 서비스 버전은 곧 종료될 예정이며 잠시 중단되었습니다. 애플리케이션 업데이트를 확인하거나 나중에 다시 시도하세요.
store_unavailable = 서비스를 일시적으로 쓸 수 없습니다
    .detail = 데이터베이스에 연결할 수 없습니다. 잠시 후 다시 시도하세요.
    .page = 잠시 후 다시 시도하세요.
backend_timeout = 서비스가 제때 응답하지 않았습니다
    .detail = 잠시 후 다시 시도하세요.
gateway_stopping = 서비스를 다시 시작하는 중입니다
    .detail = 요청이 이미 실행되었을 수 있습니다. 확인한 후 다시 보내세요.
    .page = 애플리케이션으로 돌아가 로그인되었는지 확인하세요. 로그인되지 않았다면 다시 시작하세요.
provider_timeout = 로그인 제공자가 제때 응답하지 않았습니다
    .detail = 아무도 로그인되지 않았습니다. 잠시 후 애플리케이션으로 돌아가 다시 시작하세요.

## Management API

request_malformed = 요청을 읽을 수 없습니다
    .detail = { $problem }
nothing_to_change = 변경할 내용이 없습니다
    .detail = 설정을 하나 이상 지정하세요.
token_missing = 토큰이 필요합니다
    .detail = Authorization: Bearer 헤더로 토큰을 보내세요. 명령 "signpost token create"로 만들 수 있습니다.
token_invalid = 토큰이 유효하지 않습니다
    .detail = 알 수 없거나 만료되었거나 취소된 토큰입니다. 관리자에게 새 토큰을 요청하세요.
account_not_found = 해당 계정이 없습니다
    .detail = provider와 username을 확인하세요. 계정은 사용자가 한 번 로그인하면 생성됩니다.
token_not_found = 해당 토큰이 없습니다
    .detail = 토큰 번호를 확인하세요.
token_taken = 같은 이름의 토큰이 있습니다
    .detail = 다른 이름을 선택하거나 먼저 그 토큰을 취소하세요.
role_insufficient = 토큰의 역할로는 이 작업을 할 수 없습니다
    .detail = 토큰의 역할은 { $role }입니다. 이 호출에 필요한 역할: { $needed }.
cross_site = 다른 사이트의 페이지는 호출할 수 없습니다
    .detail = 프로그램이나 이 주소의 페이지에서 호출하세요.
app_taken = 이 식별자를 가진 애플리케이션이 있습니다
    .detail = 아무것도 변경되지 않았습니다. 다른 식별자를 선택하세요.
overlap_running = 이전 키가 아직 유효합니다
    .detail = { $minutes }분 더 유효합니다. 기다리거나 end-overlap으로 유효 기간을 끝내세요.
not_drained = 드레인되어 있지 않습니다
    .detail = 운영자가 백엔드의 이 주소를 드레인하지 않았거나 그 기간이 끝났습니다.
revision_stale = 그 사이에 변경되었습니다
    .detail = 아무것도 변경되지 않았습니다. 현재 리비전은 { $revision }입니다. 다시 읽은 뒤 결정하세요.
revision_missing = 변경에 리비전이 없습니다
    .detail = 읽은 리비전을 If-Match 헤더나 본문의 "revision"으로 보내세요.
import_invalid = 파일에 문제가 있습니다
    .detail = 아무것도 가져오지 않았습니다. "problems"에 줄별 문제가 있습니다.
config_invalid = 설정 파일에 문제가 있습니다
    .detail = 아무것도 변경되지 않았습니다. "problems"에 문제 목록이 있습니다.
report_too_large = 보고서가 너무 큽니다
    .detail = 애플리케이션이 너무 많아 응답 하나에 담을 수 없습니다. 게이트웨이 컴퓨터에서 "signpost versions report" 명령을 사용하세요.
idempotency_unfinished = 첫 요청의 결과를 알 수 없습니다
    .detail = 이 멱등 키의 요청이 실행 중이거나 중단되었습니다. 변경되었을 내용을 확인한 뒤 새 키를 보내세요.
address_not_found = 해당 주소가 없습니다
    .detail = 이 이름의 백엔드에 이 주소가 없습니다.
last_address = 백엔드의 마지막 주소입니다
    .detail = 아무것도 변경되지 않았습니다. 이 주소가 없으면 백엔드를 사용할 수 없습니다. 그래도 되면 "force"를 보내세요.

## Hints

hint_seconds = 초인가요? "time"의 단위는 밀리초여야 합니다.
hint_microseconds = 마이크로초인가요? "time"의 단위는 밀리초여야 합니다.
hint_nanoseconds = 나노초인가요? "time"의 단위는 밀리초여야 합니다(예: 1732104000000).
hint_time_fraction = "time"이 소수이거나 지수 표기입니다. 정수 밀리초를 보내세요(예: 1732104000000).
hint_time_quoted = "time"의 앞뒤에 따옴표나 공백이 있습니다. 숫자만 보내세요(예: 1732104000000).
hint_time_text = "time"이 날짜 문자열입니다. 1970-01-01 00:00 UTC부터의 밀리초를 숫자로 보내세요(예: 1732104000000).
hint_local_time = "time"과 게이트웨이 시계의 차이가 { $offset }입니다. 현지 시각을 UTC로, 또는 UTC를 현지 시각으로 처리했나요? 1970-01-01 00:00 UTC부터의 밀리초를 보내세요.
hint_not_searched = 원인을 찾지 않았습니다. 이 1초 동안 잘못된 서명이 너무 많았습니다. 1초 후에 다시 시도하세요.
hint_too_large = 원인을 찾지 않았습니다. 경로와 매개변수가 8 KiB를 넘습니다. 같은 프로그램으로 더 작은 요청을 보내면 원인을 알 수 있습니다.
hint_unsorted = 서명하기 전에 매개변수 이름 순서로 정렬하지 않았습니다.
hint_empty_dropped = 값이 빈 매개변수가 빠졌습니다. 이 애플리케이션의 규칙에서는 빈 값도 함께 서명합니다.
hint_empty_kept = 값이 빈 매개변수가 서명되었습니다. 이 애플리케이션의 규칙에서는 빈 값을 뺍니다.
hint_decoded = 디코딩한 값에 서명했습니다. 이 애플리케이션은 이름과 값을 보내는 그대로 서명합니다.
hint_encoded = 보내는 형태 그대로, 또는 퍼센트 인코딩된 값에 서명했습니다. 이 애플리케이션은 디코딩한 값에 서명합니다. 요청에서 "+"는 공백입니다. 더하기 기호는 "%2B"로 보내세요.
hint_key_labelled = 키 앞에 "&key="가 붙었습니다. { $found } 형태가 아니라 { $rule } 형태로 이으세요.
hint_key_not_labelled = 키 앞에 "&key="가 없습니다. { $found } 형태가 아니라 { $rule } 형태로 이으세요.
hint_key_in_front = 키가 앞에 놓였습니다. { $found } 형태가 아니라 { $rule } 형태로 이으세요.
hint_layout = 이름, 값, 키를 { $found } 형태로 이었습니다. 이 애플리케이션은 { $rule } 형태로 잇습니다.
hint_trailing_newline = 서명한 문자열이나 키가 줄바꿈으로 끝났습니다. 파일에서 읽은 키 등에 있는 줄바꿈을 제거하세요.
hint_escape_case = 퍼센트 인코딩의 대소문자가 보낼 때와 서명할 때 다릅니다. 보내는 그대로 서명하세요.
hint_cover = { $found ->
    [request] 서명한 문자열에 메서드와 경로가 없습니다. 이 애플리케이션의 규칙에서는 매개변수 앞에 메서드, 줄바꿈(LF), 경로, 줄바꿈(LF)을 둡니다(cover = request).
    [address] 서명한 문자열에 주소나 경로가 들어 있습니다. 이 애플리케이션의 규칙에서는 메서드, 스킴, 호스트, 경로, "?" 없이 매개변수만 서명합니다(cover = parameters).
   *[parameters] 서명한 문자열에 메서드와 경로가 들어 있습니다. 이 애플리케이션의 규칙에서는 매개변수만 서명합니다(cover = parameters).
}
hint_algorithm = { $found ->
    [none] 이 애플리케이션은 { $rule }(16진수 { $digits }자리)을 사용합니다. 요청의 "sign" 길이는 다른 알고리즘의 것입니다.
   *[other] 요청이 { $found } 방식으로 서명되었습니다. 이 애플리케이션은 { $rule }을 사용합니다.
}
hint_hmac_hash = 요청이 { $found } 방식으로 서명되었습니다. 이 애플리케이션은 { $rule } 방식을 사용합니다.
hint_time_not_signed = "time"이 서명에서 빠졌습니다. 다른 매개변수와 마찬가지로 서명해야 합니다.
hint_space_as_escape = 공백을 "+"로 보냈지만 "%20"으로 서명했습니다. 보내는 그대로 서명하세요.
hint_space_as_plus = 공백을 "%20"으로 보냈지만 "+"로 서명했습니다. 보내는 그대로 서명하세요.
hint_query_left_out = 쿼리의 매개변수가 서명에서 빠졌습니다. 쿼리와 폼의 매개변수를 함께 서명하세요.
hint_preset = 프리셋 "{ $preset }"의 규칙에 따라 서명되었지만, 이 애플리케이션이 쓰는 프리셋이 아닙니다.{ $preset ->
    [decoded] {" "}그 프리셋은 디코딩한 값에 서명합니다.
    [alipay] {" "}그 프리셋은 디코딩한 값에 서명하고, 빈 값과 "sign_type"을 뺍니다.
    [wechat] {" "}그 프리셋은 디코딩한 값에 서명하고, 빈 값을 빼고, 키 앞에 "&key="를 둡니다.
    [top] {" "}그 프리셋은 디코딩한 값에 서명하고, 빈 값을 빼고, KEYa1b2KEY 형태로 잇습니다.
   *[other] {""}
}
hint_previous_key = 더 이상 유효하지 않은 이전 키로 서명되었습니다.
hint_encoded_differently = 매개변수 "{ $key }"에서 "{ $signed }" 형태로 서명하고 "{ $sent }" 형태로 전송했습니다. { $form ->
    [raw] 서명한 형태는 인코딩하지 않았거나 { $function } 같은 함수로 인코딩한 것입니다.
   *[encoded] 서로 다른 함수로 인코딩되었습니다(서명한 형태의 예: { $function }).
    } 한 번만 인코딩하고, 전송하는 내용 그대로 서명하세요.
hint_encoded_twice = 요청과 서명한 문자열이 퍼센트 인코딩 한 번만큼 다릅니다. 둘 중 하나에서 값이 두 번 인코딩된 것으로 보입니다. 한 번만 인코딩하고, 전송하는 내용 그대로 서명하세요.
hint_order = { $found ->
    [value-too] 이름이 같은 매개변수를 값으로도 정렬했습니다.
    [pair] 매개변수를 "="와 값까지 포함한 전체로 정렬했습니다.
    [value] 매개변수를 값으로 정렬했습니다.
    [ignoring-case] 매개변수를 대소문자 구분 없이 정렬했습니다.
    [descending] 매개변수를 내림차순으로 정렬했습니다.
   *[utf-16] 매개변수를 UTF-16 순서로 정렬했습니다.
    } 디코딩한 이름의 바이트 오름차순으로 정렬하고, 이름이 같은 매개변수는 전송하는 순서를 유지하세요.
hint_key_missing = 서명한 문자열에 키가 없습니다. 이 애플리케이션의 규칙에 따라 키를 넣으세요.
hint_key_in_text = 서명한 문자열에 키가 들어 있습니다. { $found } 형태가 아니라 { $rule } 형태로 이으세요. 이 애플리케이션의 HMAC에서는 키를 해시 함수의 키로만 사용합니다.
hint_key_form = { $found ->
    [hex] 키를 16진수로 디코딩했습니다.
    [base64] 키를 base64로 디코딩했습니다.
    [case] 키의 대소문자가 바뀌었습니다.
    [quotes] 키에 따옴표가 붙었습니다.
    [bom] 키 앞에 BOM이 있습니다.
    [cut] 키의 일부가 잘렸습니다.
    [unread] 자리 표시자나 "undefined"처럼 읽지 못한 값을 키로 사용했습니다.
    [swapped] HMAC의 키와 문자열이 뒤바뀌었습니다.
   *[space] 키 앞이나 뒤에 공백이 있습니다.
    } 발급된 키 문자열의 바이트를 그대로 사용하세요.
hint_stray_separator = 서명한 문자열에서 매개변수 앞에 불필요한 "?"나 "&", 또는 뒤에 불필요한 "&"가 있습니다.
hint_cover_form = 메서드와 경로의 서명 형식이 이 애플리케이션의 규칙과 다릅니다. 매개변수 앞에 대문자 메서드, 줄바꿈(LF), 전송하는 그대로의 경로(스킴, 호스트, 쿼리 제외), 줄바꿈(LF)을 차례로 두세요.
hint_sign_form = { $found ->
    [base64] "sign"이 base64 형태입니다. 이 애플리케이션은 { $rule } 값을 16진수 { $digits }자리로 사용합니다.
    [cut] "sign"이 16진수 16자리로, 잘린 MD5로 보입니다. 이 애플리케이션은 { $rule } 값을 16진수 { $digits }자리로 사용합니다.
    [around] "sign"의 16진수 앞뒤나 사이에 md5sum의 출력이나 하이픈 같은 다른 문자가 있습니다. 이 애플리케이션은 { $rule } 값을 16진수 { $digits }자리로만 사용합니다.
    [short] "sign"의 16진수 자릿수가 부족합니다. 해시를 숫자로 출력하거나 한 바이트를 한 자리로 쓸 때처럼 0이 사라졌습니다. 바이트마다 두 자리로 쓰세요. 이 애플리케이션은 { $rule } 값을 16진수 { $digits }자리로 사용합니다.
   *[other] "sign"이 해시 값의 16진수 표기가 아닙니다. 이 애플리케이션은 { $rule } 값을 16진수 { $digits }자리로 사용합니다.
}
hint_param_signed = 매개변수 "{ $key }" 항목이 서명에 포함되었습니다. 이 애플리케이션의 규칙에서는 제외합니다.
hint_param_not_signed = 매개변수 "{ $key }" 항목이 서명에 없습니다. 이 애플리케이션의 규칙에서는 다른 매개변수처럼 서명합니다.
hint_json = 매개변수를 JSON으로 서명했습니다. 전송하는 쌍을 이 애플리케이션의 규칙대로 이어 서명하세요.
hint_key_or_value = 흔한 실수로는 이 서명을 설명할 수 없습니다. 프로그램이 서명한 문자열을 전송한 바이트, 그리고 이 응답의 "canonical" 또는 "signpost sign --canonical" 출력의 문자열과 비교하세요. 그다음 어느 애플리케이션의 키를 사용하는지 확인하세요.
hint_version_in_path = 버전은 경로가 아니라 헤더로 보냅니다. 경로 "{ $path }", 헤더 "{ $name }: { $version }".
hint_missing_value = 없는 값을 "{ $found }" 형태로 서명하고 "{ $rule }" 형태로 전송했습니다. 그런 매개변수는 빼거나, 전송하는 내용 그대로 서명하세요.
hint_value_changed = { $found ->
    [trimmed] 이름이나 값 앞뒤의 공백을 전송했지만 서명하지 않았습니다.
    [html] "&"를 나타내는 "&amp;" 같은 HTML 엔터티가 서명한 문자열과 요청 중 한쪽에만 있습니다.
    [unicode] 서명한 문자열과 전송한 내용의 글자는 같지만 유니코드 정규화 형식(NFC와 NFD 등)이 다릅니다.
    [number] 숫자를 전송할 때와 다른 형태로 서명했습니다(예: "1"과 "1.0").
    [boolean] 참/거짓 값을 전송할 때와 다른 형태로 서명했습니다(예: "true"와 "True" 또는 "1").
    [brackets] 전송한 이름의 대괄호를 빼고 서명했습니다(예: "tag[0]"과 "tag").
    [lines] 줄바꿈을 전송할 때와 다른 형태로 서명했습니다(LF만, 또는 CR LF).
    [json] 값의 JSON을 두 번 만들어 표기(공백이나 "\/")가 다릅니다.
    [once] 이름이 같은 여러 매개변수 중 하나만 서명했습니다. 맵이나 딕셔너리에는 하나만 남습니다.
    [joined] 이름이 같은 여러 매개변수를 쉼표로 이어 하나로 서명했습니다.
    [text] 해시하기 전에 문자열 전체를 소문자나 대문자로 바꾸었습니다. 대소문자가 상관없는 것은 "sign"의 16진수뿐입니다.
    [time] 전송한 것과 다른 "time"에 서명했습니다(몇 밀리초 차이, 또는 초 단위). 요청마다 시계를 한 번만 읽으세요.
    [nothing] 서명된 매개변수가 없습니다. 매개변수를 설정하기 전에, 또는 이미 읽은 본문에서 문자열을 만들었을 수 있습니다.
    [spaces] 서명하기 전에 이름과 값에서 공백을 제거했습니다.
   *[letters] 이름과 값을 소문자나 대문자로 바꾸어 서명했고, 전송한 것과 다릅니다.
    } 값은 한 번만 만들고, 전송하는 내용 그대로 서명하세요.
hint_form_left_out = 폼의 매개변수가 서명에서 빠졌습니다. 쿼리와 폼의 매개변수를 함께 서명하세요.
hint_key_sent = 키 자체가 전송되었습니다. 키가 이제 주소나 폼에 있고 로그에도 남았을 수 있습니다. 키를 교체하세요. 키는 서명에만 쓰고 절대 전송하지 않습니다.
hint_body_unsigned = 매개변수 서명은 이 본문을 포함하지 않습니다. 헤더로 서명하세요: 시각, 서명, 필요하면 논스.
hint_headers_missing = 이 요청은 헤더로 서명합니다: 시각은 "…-X-Time", 서명은 "…-X-Sign"입니다.
hint_in_parameters = "{ $found }" 항목이 매개변수로 전송되었습니다. 이 애플리케이션은 헤더로 서명합니다.
hint_line = { $found ->
    [method] 메서드가 다른 대소문자로 서명되었습니다.
    [path] 서명한 대상에 쿼리가 없습니다. 전송한 그대로의 경로와 쿼리여야 합니다.
    [address] 서명한 대상에 스킴이나 호스트가 있습니다. 전송한 그대로의 경로와 쿼리여야 합니다.
    [empty] 빈 본문의 해시가 서명되었습니다.
    [digits] 본문의 해시가 소문자 16진수 64자리로 서명되지 않았습니다.
    [body] 본문 자체가 서명되었습니다. 마지막 줄은 본문의 SHA-256 16진수입니다.
    [nonce] 논스 줄이 없습니다. 논스가 없으면 빈 줄입니다.
   *[key] 키 줄이 다릅니다. md5에는 텍스트 끝에 키가 있고 hmac-sha256에는 없습니다.
}
hint_in_header = "{ $found }" 항목이 헤더로 전송되었습니다. "time"과 "sign"은 쿼리나 폼의 매개변수로 보내세요.
hint_misnamed = "{ $key }" 매개변수가 전송되었습니다. 이름은 정확히 소문자 "time"과 "sign"입니다. 앞에 "amp;"가 있으면 주소에 "&" 대신 "&amp;"가 쓰인 것입니다.
hint_app_empty = 식별자가 비어 있습니다. 프로그램이 설정을 읽었는지 확인하세요.
hint_app_key = 식별자로 전송된 것은 키나 자격 증명으로 보입니다. 그 자리에는 식별자를 보내세요. 키는 서명에만 쓰고 절대 전송하지 않습니다. 그것이 자신의 키라면 로그에 남았을 수 있으니 교체하세요.
hint_app_unread = 자리 표시자나 "undefined"처럼 읽지 못한 값이 식별자로 전송되었습니다. 프로그램이 설정을 읽었는지 확인하세요.
hint_app_character = 식별자에 쓸 수 없는 문자가 있습니다. A-Z, a-z, 0-9, ".", "_", "-"만 쓸 수 있습니다. 흔한 원인: 따옴표, 공백, 자리 표시자의 괄호, 또는 식별자 대신 보낸 애플리케이션 이름.
hint_app_length = 생성된 식별자는 24자이고 어떤 식별자도 64자를 넘지 않는데, 이것은 너무 짧거나 깁니다. 전체를 복사했나요?
hint_app_unknown = 식별자의 형식은 맞지만 이 게이트웨이에 그 애플리케이션이 없습니다. 대소문자를 구분합니다. 다른 환경의 식별자인가요?
hint_app_in_query = 매개변수 "app"은 브라우저용 경로에서만 애플리케이션을 나타냅니다. 식별자를 헤더로 보내세요.
hint_path = "{ $path }" 경로를 찾으셨나요? 경로는 대소문자, 슬래시, 확장자를 구분하며 앞에 아무것도 붙지 않습니다.
hint_charset = 이름이나 값에 ASCII가 아닌 문자가 있습니다. 서명할 때와 전송할 때 모두 GBK 등이 아니라 UTF-8로 인코딩하세요.
hint_cover_rule = 이 애플리케이션은 매개변수 앞에 대문자 메서드, 줄바꿈(LF), 전송하는 그대로의 경로(스킴, 호스트, 쿼리 제외), 줄바꿈(LF)도 서명합니다.

## Sign Doctor

doctor_old = 이 요청은 { $what } 전의 것입니다. 지금 보내면 만료되어 거부되지만, 오류로 세지 않습니다. 방금 만든 요청이라면 클라이언트의 시계가 느린 것입니다.
doctor_other_app = 요청의 애플리케이션이 따로 지정된 애플리케이션({ $what })과 다릅니다.
doctor_completed = 줄에 캐리지 리턴이 없습니다. 줄 끝, 마지막 빈 줄, 빠진 Content-Length를 채웠습니다.
doctor_http2 = HTTP/2 또는 HTTP/3 요청이므로, 같은 내용의 HTTP/1.1 요청으로 검사했습니다.
doctor_host = 요청을 보낸 호스트를 알 수 없어 public_url의 호스트를 사용했습니다.
doctor_unread = 다음 부분은 읽지 않았습니다: { $what }
doctor_left = 요청 뒤에 { $what }바이트가 이어집니다. Content-Length나 청크에 따르면 요청의 일부가 아니므로, 게이트웨이는 다음 요청으로 봅니다.
doctor_body = 본문이 붙여 넣어지지 않았습니다. 그래서 폼, 매개변수, 서명과 그 이후는 확인하지 않았습니다.
doctor_not_http = RFC 9112의 HTTP가 아니므로 게이트웨이는 본문 없는 400으로 응답합니다: { $what }.
doctor_unreached = 이후의 단계는 확인하지 않았습니다.
doctor_credential = 자격 증명은 확인하지 않았습니다.
doctor_unchecked = 확인하지 않은 것: 요청의 반복 여부, 속도 제한, TLS와 https 리디렉션, 게이트웨이 앞의 프록시, 백엔드.

## Pages and login

page_confirm_title = { $application }에 로그인
page_confirm_compare = 이 대조 코드가 { $application }에 표시된 대조 코드와 같은지 확인하세요.
page_confirm_code = 대조 코드
page_confirm_warning = 직접 시작한 로그인이고 두 대조 코드가 같을 때만 계속하세요.
page_confirm_begun = 이 로그인은 { $minutes }분 전에 { $network } 네트워크에서 시작되었습니다.
page_confirm_network = 이 브라우저는 다른 네트워크에 있습니다. { $application } 앱이 서버에서 실행되거나 다른 회선을 사용하는 경우에는 정상입니다. 직접 시작한 로그인이 아니면 취소하세요.
page_confirm_button = 대조 코드가 같습니다: { $provider } 계정으로 로그인
page_confirm_cancel = 내가 시작하지 않은 로그인입니다: 취소
page_choose_button = { $provider } 계정으로 로그인
page_again_title = 로그인 제공자를 지금은 이용할 수 없습니다
page_again_wait = 이 로그인은 아직 유효합니다. 잠시 후 다시 시도하세요.
page_again_button = 다시 시도
page_cancelled_title = 로그인을 취소했습니다
page_cancelled_close = 아무도 로그인되지 않았습니다. 이 창을 닫아도 됩니다.
page_late_title = 이 로그인은 이미 완료되었습니다
page_late_warning = 더 이상 취소할 수 없습니다. 직접 시작한 로그인이 아니라면 다른 사람이 내 이름으로 { $application }에 로그인했을 수 있습니다. 즉시 { $application } 운영자에게 알리세요.
page_done_title = 로그인되었습니다
page_done_close = 이 창을 닫고 { $application } 화면으로 돌아가도 됩니다.
page_finishing_title = 로그인을 처리하고 있습니다
page_finishing_wait = 잠시만 기다려 주세요. 몇 초 후 자동으로 다음 화면으로 넘어갑니다.
page_finished_title = 완료된 로그인입니다
page_finished_link = { $application } 화면으로 돌아가기
page_link_title = 사용할 수 없는 링크입니다
page_link_detail = 애플리케이션이 만든 링크를 이 서비스에서 받아들일 수 없습니다. 애플리케이션으로 돌아가 다시 시작하세요. 그래도 해결되지 않으면 아래 정보를 애플리케이션 제작자에게 전달하세요.
page_problem_code = 오류 코드
page_problem_status = HTTP 상태 코드
page_problem_retry = 재시도가 도움이 되는지
    .no = 아니요. 같은 요청은 다시 실패합니다.
    .yes = 예. 응답에 Retry-After 헤더가 있으면 먼저 그 시간만큼 기다리세요. 요청마다 현재 "time"으로 다시 서명하세요.
    .new-login = 새로 로그인해야 합니다.
    .log-in = 사용자가 로그인한 뒤에는 가능합니다.
page_problem_request = 요청 ID
page_problem_developer = 애플리케이션 개발자 안내
page_problem_link = 자세한 정보

## Retirement of a version

retire_used = 최근 { $days }일간 요청: { $number }건
retire_last_used = 마지막 { $at }
retire_users = 애플리케이션: { $number }개({ $list })
retire_extended = 사용 기간이 연장된 애플리케이션: { $number }개, 최대 { $at }까지
retire_used_lately = 최근 { $days }일간 요청을 보낸 애플리케이션: { $number }개. 앞으로 410 응답을 받게 됩니다.
retire_default = 기본 버전입니다.
retire_pinned = 이 버전이 기본인 애플리케이션: { $number }개
retire_paths = 메서드와 경로: { $number }개({ $list })
retire_ending_paths = 자체 날짜가 있는 경로: { $list }
retire_compared = { $to } 버전과의 응답 쌍: { $pairs }개, 경로: { $paths }개, 그중 다른 경로: { $differing }개
retire_no_proof = 증명되지 않았습니다: { $command }
retire_proven = 클라이언트가 사용한 경로: { $number }개, 그중 증명됨: { $proven }개
retire_unpaired = 쌍이 없는 요청: { $list }
retire_few_pairs = 쌍이 부족한 요청: { $list }
retire_unproven = 증명 안 됨: { $request }(요청 { $number }건): { $reason }
retire_unprovable = 사용 중이지만 브리지도, 변경을 적용한 섀도도 없습니다.
retire_bridged = { $to } 버전으로 브리지, 요청: { $number }건
retire_not_bridged = 브리지 없음
retire_own_backend = 아직 자체 백엔드가 응답합니다. bridge 설정으로 대체하십시오.
retire_brownouts = 지난 일시 중단: { $number }회
retire_brownouts_ahead = 예정된 일시 중단: { $number }회({ $list })
retire_no_brownout = 지난 일시 중단이 없습니다.
retire_served = 자체 백엔드가 요청에 응답합니다
retire_served_by_bridge = { $to } 버전의 백엔드가 요청에 응답합니다
retire_until = { $at }부터 410 version_retired 응답을 받습니다
retire_no_end = 종료 시각이 없습니다
retire_no_sunset = 종료 예정일이 없습니다.
retire_other_sunset = 종료 예정일은 { $at }입니다. 클라이언트는 이 날짜만 알고 있습니다.
retire_not_deprecated = 아직 비권장 상태가 아닙니다.
retire_more = { $list } 외 { $number }개
