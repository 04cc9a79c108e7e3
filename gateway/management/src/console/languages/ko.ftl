# 콘솔의 글(한국어). API의 낱말(상태 등)은 그 낱말을 이름으로 하는 속성입니다.

## The frame

console_skip = 본문으로 건너뛰기
console_navigation = 콘솔 메뉴
console_overview = 개요
console_apps = 애플리케이션
console_versions = 버전
console_audit = 감사
console_settings = 설정
console_sign_out = 로그아웃
console_problem_code = 오류 코드
console_problem_request = 요청 ID
console_problem_back = 개요로 돌아가기
console_next_page = 다음 페이지
console_copy = 복사
console_copied = 복사됨
console_done = 완료
    .signed-out = 로그아웃되었습니다.
    .session-ended = 토큰이 만료되었거나 취소되었습니다. 다시 로그인하세요.
    .app-update = 애플리케이션을 변경했습니다.
    .app-end-overlap = 이전 키는 더 이상 유효하지 않습니다.
    .app-enable = 애플리케이션의 요청을 다시 받습니다.
    .app-disable = 애플리케이션의 요청은 이제부터 거부됩니다.
    .app-delete = 애플리케이션을 삭제했습니다.
    .drain = 이 주소는 새 요청을 받지 않습니다.
    .undrain = 이 주소는 다시 요청을 받습니다.
    .reloaded = 설정을 다시 로드했습니다.
    .token-revoked = 토큰을 취소했습니다. 모든 게이트웨이가 이 토큰을 거부합니다.

## Sign in

console_sign_in = 로그인
console_sign_in_how = 관리 API의 토큰으로 로그인하세요. 토큰은 관리자에게 요청하거나 게이트웨이 컴퓨터에서 다음 명령으로 직접 만드세요.
console_sign_in_button = 로그인
console_sign_in_account = 계정으로 로그인
console_account_failed = 로그인에 실패했거나 확인되지 않았습니다. 처음부터 다시 시작하세요.
console_account_other_browser = 이 로그인은 다른 브라우저에서 시작되었거나 너무 오래되었습니다. 처음부터 다시 시작하세요.
console_account_busy = 지금 많은 사람이 로그인하고 있습니다. 몇 초 뒤에 다시 시작하세요.
console_account_no_app = 콘솔이 로그인에 사용하는 애플리케이션이 없거나 비활성화되었습니다. 게이트웨이 파일에서 확인할 키: management.console.application.
console_account_unknown = 허용되지 않은 계정입니다: { $username } ({ $provider }). 관리자가 게이트웨이 파일의 management.console.accounts 에서 허용할 수 있습니다.

## Overview

console_attention = 확인이 필요한 항목
console_attention_none = 없습니다. 모든 게이트웨이가 준비되었고 모든 주소가 요청을 받습니다.
console_attention_brownout = 버전 { $version } 일시 중단: 지금은 요청이 거부됩니다.
console_attention_address = 백엔드 { $backend }의 주소 { $address }: { $health }
console_attention_readiness = 호스트 { $host }의 게이트웨이 보고: { $readiness }
console_attention_differs = 호스트 { $host }의 게이트웨이 설정이 다른 게이트웨이와 다릅니다. 다른 키: { $keys }
console_attention_reload = 호스트 { $host }의 게이트웨이가 마지막으로 다시 로드한 설정을 거부했습니다.
console_gateways = 게이트웨이
console_last_changes = 최근 변경
console_all_changes = 이 애플리케이션의 모든 변경
console_host = 호스트
console_ready = 상태
console_release = 릴리스
console_started = 시작 시각
console_configuration = 설정 내용
console_certificates = 인증서
console_readiness = 게이트웨이 상태
    .ready = 준비됨
    .not-ready = 준비 안 됨
    .gone = 오프라인
    .differs = 불일치

## Applications

console_search_apps = 식별자 또는 이름의 앞부분
console_search = 검색
console_new_app = 새 애플리케이션
console_import = 가져오기
console_apps_none = 아직 애플리케이션이 없습니다. 첫 애플리케이션을 만들거나 기존 애플리케이션을 가져오세요.
console_apps_not_found = 이 식별자를 가졌거나 이름이 이렇게 시작하는 애플리케이션이 없습니다. 대소문자를 구분합니다.
console_name = 이름
console_ident = 식별자
console_key = 키
console_state = 상태
    .active = 활성
    .disabled = 비활성
    .revoked = 취소됨
console_default_version = 기본 버전
console_created = 생성 시각
console_rate_limit = 요청 속도 제한
console_profile = 서명 규칙
console_return_to = 로그인 후 돌아갈 수 있는 출처
console_overlap = 이전 키의 유효 기한
console_revision = 리비전
console_as_gateway = 게이트웨이와 동일
console_unchanged = 변경 안 함
console_create = 만들기
console_created_app = 애플리케이션을 만들었습니다: { $name }
console_rotated = 새 키를 발급했습니다: { $name }
console_key_once = 키는 지금만 표시됩니다. 클라이언트가 키를 읽는 곳에 저장하세요.
console_try = 사용해 보기
console_samples = 언어별 코드
console_samples_how = 각 코드는 해당 언어의 클라이언트 라이브러리(Signpost 소스의 gateway/clients 에 있는 파일 하나)를 사용합니다. 키는 data/app.key 파일에서 읽습니다.
console_to_app = { $name } 화면으로 이동
console_rotate_how = 이제부터 클라이언트는 새 키로 서명합니다. 모두 바꿀 수 있도록 이전 키도 몇 시간 동안 유효합니다.
console_end_overlap_how = 아직 이전 키로 서명하는 클라이언트는 즉시 거부됩니다.
console_disable_how = 다시 활성화할 때까지 애플리케이션의 모든 요청이 거부됩니다. 키와 설정은 유지됩니다.
console_enable_how = 애플리케이션의 요청을 같은 키로 다시 받습니다.
console_delete_how = 애플리케이션과 그 키, 설정이 영구히 삭제됩니다. 클라이언트는 거부됩니다.
console_delete_other_name = 아무것도 삭제되지 않았습니다. 입력한 이름이 애플리케이션의 이름과 다릅니다.
console_stale = 그 사이에 다른 사람이 애플리케이션을 변경했습니다. 위에는 현재 내용이, 양식에는 입력한 내용이 있습니다. 비교한 뒤 변경이 여전히 필요하면 양식을 다시 보내세요.
console_import_how = CSV 또는 JSON Lines 형식으로 한 줄에 하나씩, 애플리케이션의 식별자와 키를 적습니다. 모두 가져오거나 하나도 가져오지 않습니다. 가져오지 않으면 어느 줄에 어떤 문제가 있는지 표시됩니다.
console_imported = 가져온 애플리케이션: { $number }개.
console_allow_weak_key = 128비트 미만의 키 허용
console_field_name = 이름
    .hint = 1~64자. 사용자가 로그인할 때 표시됩니다.
console_field_default_version = 버전을 지정하지 않은 요청의 버전
console_field_rate_limit = 자체 요청 속도 제한
    .hint = 예: 100/200(초당 요청 수와 버스트 요청 수). 또는 unlimited. 비워 두면 게이트웨이와 같습니다.
console_field_return_to = 로그인 후 돌아갈 수 있는 출처
    .hint = 한 줄에 하나씩(예: https://shop.example).
console_field_preset = 정규화 문자열
console_field_algorithm = 알고리즘
console_field_cover = 서명 대상
console_field_replay = 반복된 요청
console_field_overlap_hours = 이전 키를 유지할 시간(시간 단위)
    .hint = 0~720.
console_field_confirm = 애플리케이션의 이름을 입력하세요
console_field_reason = 사유
    .hint = 감사에 기록됩니다. 비워 두어도 됩니다.
console_field_file = 가져올 줄
console_field_token = 토큰
    .hint = sp_로 시작합니다.
console_change = 변경
    .update = 설정 변경
    .rotate = 새 키 발급
    .end-overlap = 이전 키 종료
    .enable = 활성화
    .disable = 비활성화
    .delete = 삭제
    .drain = 드레인
    .undrain = 드레인 해제
    .revoke = 토큰 취소

## Versions

console_version = 버전
console_stage = 단계
console_stage_of = 버전의 단계
    .current = 현행
    .deprecated = 비권장
    .brownout = 일시 중단
    .past-sunset = 종료 예정일 경과
    .retired = 종료됨
console_default = 기본
console_deprecated = 비권장 시작
console_sunset = 종료 예정일
console_after_sunset = 종료 예정일 이후
console_after = 종료 예정일 이후
    .serve = 요청을 처리함
    .gone = 요청에 410 응답
console_today = 오늘
console_brownout = 일시 중단
console_addresses = 주소
console_used_by = 최근 30일: 요청 { $requests }건, 전체의 { $percent }%, 애플리케이션 { $applications }개.
console_bridge_to = 브리지를 통해 { $to } 버전이 클라이언트에 응답합니다.
console_shadow_of = { $to } 버전에 보낸 사본: 응답 쌍 { $pairs }개, 다른 경로 { $paths }개, 애플리케이션 { $all }개 중 { $applications }개에 영향.
console_shadow_changed = 변경을 적용해 { $to } 버전에 보낸 사본: 응답 쌍 { $pairs }개, 다른 경로 { $paths }개, 애플리케이션 { $all }개 중 { $applications }개에 영향.
console_unseen = 아직 확인되지 않음
console_path = 경로
console_here = 이쪽
console_there = 상대
console_pairs = 쌍
console_share = 전체 요청 중 비율
console_users = 아직 사용하는 애플리케이션
console_requests = 요청 수
console_client = 최근 클라이언트
console_until = 해제 예정
console_force = 다른 주소가 남지 않아도 드레인(그러면 백엔드의 요청이 거부됩니다)
console_field_minutes = 자동으로 해제될 때까지의 시간(분)
console_kind = 요청의 집계 대상
    .callbacks = 로그인 콜백
    .others = 다른 애플리케이션
console_part = 버전의 구성 요소
    .own = 버전 자체
    .canary = 카나리
    .route = 라우트
console_health = 주소의 상태
    .healthy = 정상
    .unhealthy = 비정상
    .unreachable = 연결 불가
    .drained = 드레인됨
    .unchecked = 검사 안 함
    .unknown = 알 수 없음

## Audit

console_audit_none = 기록이 없습니다.
console_filter = 필터
console_when = 시각
console_who = 작업자
console_action = 작업
console_subject = 대상
console_changes = 변경 전 → 변경 후
console_reason = 사유
console_field_since = 시작 시점
    .hint = 예: 7d, 12h, 2026-11-26.
console_field_actor = 작업자
console_field_subject = 대상

## Settings

console_tokens = 토큰
console_reload = 설정 다시 로드
console_configuration_how = 이 게이트웨이가 실행에 사용하는 설정입니다. 게이트웨이의 파일에서 오며 여기서는 파일을 편집하지 않습니다. 비밀 값은 숨겨집니다.
console_setting = 키
console_value = 값
console_source = 출처
console_source_of = 값의 출처
    .file = 설정 파일
    .environment = 환경 변수
    .secret-file = 별도 파일
    .default = 기본값
console_before = 변경 전
console_afterwards = 변경 후
console_reload_changes = 다시 로드하면 바뀌는 설정
console_reload_later = 새 프로세스가 필요한 설정
console_reload_nothing = 파일이 현재 적용된 설정과 같습니다. 다시 로드해도 바뀌는 것이 없습니다.
console_reload_rejected = 다시 로드하면 거부되며 현재 적용된 설정이 유지됩니다. 먼저 파일을 고치세요.
console_role = 역할
    .viewer = 열람자
    .operator = 운영자
    .admin = 관리자
console_last_used = 마지막 사용
console_ends = 만료
console_new_token = 새 토큰
console_created_token = 토큰을 만들었습니다: { $name }
console_token_once = 토큰은 지금만 표시됩니다. 안전한 방법으로 사용자에게 전달하세요.
console_field_role = 역할
console_field_days = 유효 일수
    .hint = 1~366.

## 트래픽

console_traffic = 지난 한 시간의 요청
console_traffic_none = 지난 한 시간 동안 요청이 없습니다. 게이트웨이가 받은 요청은 몇 초 뒤 여기에 표시됩니다.
console_traffic_most = 분당 최대 { $requests } 건
console_traffic_begin = 한 시간 전
console_traffic_end = 지금
console_no_version = 버전 없음
console_answered = 응답
console_rejected = 거부
console_failed = 실패
console_causes = 요청이 거부되거나 실패한 이유
console_rejected_apps = 애플리케이션별 거부된 요청

## 서명 진단

console_doctor = 서명 진단
console_doctor_paste = 거부된 요청
console_doctor_by_id = 거부된 요청을 ID 로 찾기
console_examine = 진단
console_find = 찾기
console_field_request = 요청
    .hint = 요청 줄부터 시작하는 원본 요청, curl 또는 PowerShell 명령, curl -v의 출력, fetch(…), HAR 또는 URL.
console_field_app = 애플리케이션
    .hint = 요청에 없을 때 사용할 식별자.
console_field_canonical = 클라이언트가 서명하는 문자열
    .hint = 비워 두어도 됩니다. 입력하면 첫 번째 차이를 표시합니다.
console_field_version = 버전
console_field_status = 상태 코드
console_field_request_id = 요청 ID
    .hint = X-Request-Id 또는 오류에 있는 값.
console_rejection_gone = 이 요청을 더 이상 가지고 있는 게이트웨이가 없거나, 거부한 게이트웨이가 없습니다. 대신 요청을 붙여 넣으세요.
console_rejection_params = 매개변수와 값의 바이트 수
console_rejection_how = 매개변수의 값은 보관되지 않습니다. 각 단계를 보려면 요청 자체를 붙여 넣으세요.
console_client_address = 클라이언트
console_backend = 백엔드
console_doctor_wrong = 게이트웨이가 이 요청을 거부합니다.
console_doctor_right = 확인한 범위에서는 게이트웨이가 이 요청을 받아들입니다.
console_doctor_old = 이 요청에 오류는 없지만, 오래되어 다시 보낼 수 없습니다.
console_step = 게이트웨이의 단계
    .request = 메서드, 헤더, 본문의 구분
    .callback = 공급자의 리디렉션(서명이 필요 없음)
    .app = 애플리케이션
    .params = 폼과 매개변수
    .time = 시간
    .sign = 서명
    .route = 버전과 경로
    .account = 계정
console_doctor_params = 서명되는 순서의 매개변수
console_doctor_sent = 전송된 형태
console_doctor_signed = 서명 대상
console_yes = 예
console_no = 아니요
console_doctor_canonical = 서명할 문자열
console_doctor_difference = 클라이언트의 문자열은 { $at } 바이트 다음부터 다릅니다.
console_doctor_expected = 올바른 것
console_doctor_found = 클라이언트의 것
console_doctor_request = 현재 시간으로 만든 올바른 요청

## 실시간

console_live = 실시간
console_live_now = 들어오는 요청
console_live_script = 스크립트를 실행하는 브라우저에서 요청이 여기에 표시됩니다.
console_live_on = 이 게이트웨이의 요청이 끝나는 대로 여기에 표시됩니다.
console_live_off = 연결이 끊어졌습니다. 브라우저가 다시 시도합니다.
console_live_ended = 게이트웨이가 연결을 끝냈습니다. 세션이 끝났거나 실시간 페이지가 너무 많습니다. 페이지를 다시 불러오세요.
console_live_missed = 요청이 많아 지난 1 초의 # 건을 생략했습니다. 필터를 쓰면 찾는 요청이 표시됩니다.
console_live_rejected = 최근 거부된 요청
console_rejections_none = 게이트웨이가 시작된 뒤 거부된 요청이 없습니다.
console_explain = { $id } 설명
console_all = 전체
console_request = 요청
console_app = 애플리케이션
console_status = 상태 코드
console_duration = 밀리초
console_app_versions = 지난 30 일 동안 호출한 버전
console_app_unused = 호출한 버전이 없습니다.
