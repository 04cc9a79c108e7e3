# 控制台的文字（简体中文）。API 的用词（例如状态）是以该词为名的属性。

## The frame

console_skip = 跳到内容
console_navigation = 控制台导航
console_overview = 概览
console_apps = 应用
console_versions = 版本
console_audit = 审计
console_settings = 设置
console_sign_out = 退出登录
console_problem_code = 错误码
console_problem_request = 请求编号
console_problem_back = 返回概览
console_next_page = 下一页
console_copy = 复制
console_copied = 已复制
console_done = 完成
    .signed-out = 您已退出登录。
    .session-ended = 您的令牌已过期或已被吊销。请重新登录。
    .app-update = 应用已更改。
    .app-end-overlap = 旧密钥已失效。
    .app-enable = 应用的请求重新被接受。
    .app-disable = 应用的请求从现在起会被拒绝。
    .app-delete = 应用已删除。
    .drain = 该地址不再收到新请求。
    .undrain = 该地址重新收到请求。
    .reloaded = 配置已重新加载。
    .token-revoked = 令牌已吊销。所有网关都会拒绝它。

## Sign in

console_sign_in = 登录
console_sign_in_how = 请用管理 API 的令牌登录。令牌可由管理员为您创建，也可由您在网关所在的机器上创建：
console_sign_in_button = 登录
console_sign_in_account = 使用账号登录
console_account_failed = 登录失败，或未被确认。请重新开始。
console_account_other_browser = 此登录是在另一个浏览器中开始的，或已超时。请重新开始。
console_account_busy = 目前登录的人很多。请几秒后重新开始。
console_account_no_app = 控制台用于登录的应用不存在或已停用：网关文件中的 management.console.application。
console_account_unknown = { $provider } 的账号 { $username } 不能登录。管理员可在网关文件的 management.console.accounts 中允许它。

## Overview

console_attention = 需要关注
console_attention_none = 无：所有网关均已就绪，所有地址均在接收请求。
console_attention_brownout = 版本 { $version } 已暂时关闭，其请求目前会被拒绝。
console_attention_address = 后端 { $backend } 的地址 { $address }：{ $health }。
console_attention_readiness = { $host } 上的网关报告：{ $readiness }
console_attention_differs = { $host } 上的网关与其他网关的配置不同。不同的键：{ $keys }
console_attention_reload = { $host } 上的网关拒绝了最近一次配置重新加载。
console_gateways = 网关
console_last_changes = 最近的更改
console_all_changes = 此应用的全部更改
console_host = 主机
console_ready = 状态
console_release = 程序版本
console_started = 启动时间
console_configuration = 配置
console_certificates = 证书
console_readiness = 网关的状态
    .ready = 就绪
    .not-ready = 未就绪
    .gone = 离线
    .differs = 不一致

## Applications

console_search_apps = 标识，或名称的开头
console_search = 搜索
console_new_app = 新建应用
console_import = 导入
console_apps_none = 还没有应用。请创建第一个应用，或导入已有的应用。
console_apps_not_found = 没有应用使用此标识，也没有应用的名称以此开头。区分大小写。
console_name = 名称
console_ident = 标识
console_key = 密钥
console_state = 状态
    .active = 已启用
    .disabled = 已停用
    .revoked = 已吊销
console_default_version = 默认版本
console_created = 创建时间
console_rate_limit = 速率限制
console_profile = 签名规则
console_return_to = 登录可返回的来源
console_overlap = 旧密钥有效期至
console_revision = 修订号
console_as_gateway = 与网关相同
console_unchanged = 不更改
console_create = 创建
console_created_app = 已创建 { $name }
console_rotated = 已为 { $name } 生成新密钥
console_key_once = 密钥只在此时显示。请将其存放到客户端读取密钥的位置。
console_try = 试一试
console_samples = 各种语言的代码
console_samples_how = 每段代码使用该语言的客户端库：Signpost 源码 gateway/clients 中的一个文件。密钥从文件 data/app.key 读取。
console_to_app = 前往 { $name }
console_rotate_how = 客户端从现在起用新密钥签名。旧密钥在几小时内继续有效，以便所有客户端完成更换。
console_end_overlap_how = 仍用旧密钥签名的客户端会立即被拒绝。
console_disable_how = 在重新启用之前，应用的所有请求都会被拒绝。其密钥和设置会保留。
console_enable_how = 应用的请求会重新被接受，密钥不变。
console_delete_how = 应用及其密钥和设置会被永久删除。其客户端会被拒绝。
console_delete_other_name = 未作任何删除：您输入的名称不是该应用的名称。
console_stale = 期间有人更改了此应用。上方是其当前的内容，表单中是您填写的内容。请对照；如仍需更改，请再次提交表单。
console_import_how = 每行一个应用，格式为 CSV 或 JSON Lines，各含标识和密钥。要么全部导入，要么全不导入；未导入时会显示哪一行有什么问题。
console_imported = 已导入：{ $number }。
console_allow_weak_key = 接受不足 128 位的密钥
console_field_name = 名称
    .hint = 1 到 64 个字符。用户登录时会看到它。
console_field_default_version = 未指明版本的请求所用的版本
console_field_rate_limit = 单独的速率限制
    .hint = 例如 100/200：每秒请求数和突发请求数。或：unlimited。留空：与网关相同。
console_field_return_to = 登录可返回的来源
    .hint = 每行一个，例如 https://shop.example。
console_field_preset = 规范化字符串
console_field_algorithm = 算法
console_field_cover = 签名范围
console_field_replay = 重复的请求
console_field_overlap_hours = 旧密钥继续有效的小时数
    .hint = 0 到 720。
console_field_confirm = 请输入应用的名称
console_field_reason = 原因
    .hint = 供审计使用，可留空。
console_field_file = 各行内容
console_field_token = 令牌
    .hint = 以 sp_ 开头。
console_change = 更改
    .update = 更改设置
    .rotate = 生成新密钥
    .end-overlap = 使旧密钥失效
    .enable = 启用
    .disable = 停用
    .delete = 删除
    .drain = 摘除
    .undrain = 恢复
    .revoke = 吊销

## Versions

console_version = 版本
console_stage = 阶段
console_stage_of = 版本的阶段
    .current = 当前
    .deprecated = 已弃用
    .brownout = 暂时关闭
    .past-sunset = 已过停服时间
    .retired = 已停止服务
console_default = 默认
console_deprecated = 弃用时间
console_sunset = 停服时间
console_after_sunset = 停服时间之后
console_after = 停服时间之后
    .serve = 请求照常处理
    .gone = 请求返回 410
console_today = 今天
console_brownout = 暂时关闭
console_addresses = 地址
console_used_by = 最近 30 天：{ $requests } 个请求，占全部的 { $percent }%，来自 { $applications } 个应用。
console_bridge_to = 其客户端经桥接由 { $to } 服务。
console_shadow_of = 发给 { $to } 的副本：{ $pairs } 对响应，{ $paths } 个路径不同，影响 { $all } 个应用中的 { $applications } 个。
console_shadow_changed = 应用变更后发给 { $to } 的副本：{ $pairs } 对响应，{ $paths } 个路径不同，影响 { $all } 个应用中的 { $applications } 个。
console_unseen = 尚未出现
console_path = 路径
console_here = 本版本
console_there = 对方
console_pairs = 对
console_share = 占全部请求的比例
console_users = 仍在使用的应用
console_requests = 请求数
console_client = 最近的客户端
console_until = 直至
console_force = 即使没有其他地址也摘除：此后端的请求随后会被拒绝
console_field_minutes = 自动恢复前的分钟数
console_kind = 请求的计数对象
    .callbacks = 登录回调
    .others = 其他应用
console_part = 版本的组成部分
    .own = 版本自身
    .canary = 金丝雀
    .route = 路由
console_health = 地址的健康状态
    .healthy = 健康
    .unhealthy = 不健康
    .unreachable = 无法连接
    .drained = 已摘除
    .unchecked = 未检查
    .unknown = 未知

## Audit

console_audit_none = 没有记录。
console_filter = 筛选
console_when = 时间
console_who = 操作者
console_action = 操作
console_subject = 对象
console_changes = 更改前 → 更改后
console_reason = 原因
console_field_since = 起始时间
    .hint = 例如 7d、12h 或 2026-11-26。
console_field_actor = 操作者
console_field_subject = 对象

## Settings

console_tokens = 令牌
console_reload = 重新加载配置
console_configuration_how = 此网关运行所用的配置。它来自网关的文件，此处不会改动这些文件。机密值已隐藏。
console_setting = 键
console_value = 值
console_source = 来源
console_source_of = 值的来源
    .file = 配置文件
    .environment = 环境变量
    .secret-file = 单独的文件
    .default = 默认值
console_before = 更改前
console_afterwards = 更改后
console_reload_changes = 重新加载会更改
console_reload_later = 以下更改需要新进程
console_reload_nothing = 文件与生效的配置一致：重新加载不会更改任何内容。
console_reload_rejected = 重新加载会被拒绝，生效的配置保持不变。请先修正文件：
console_role = 角色
    .viewer = 查看者
    .operator = 运维人员
    .admin = 管理员
console_last_used = 最近使用
console_ends = 到期时间
console_new_token = 新建令牌
console_created_token = 已创建令牌 { $name }
console_token_once = 令牌只在此时显示。请通过安全的方式交给使用者。
console_field_role = 角色
console_field_days = 有效天数
    .hint = 1 到 366。

## 流量

console_traffic = 最近一小时的请求
console_traffic_none = 最近一小时没有请求。网关收到请求几秒后会显示在这里。
console_traffic_most = 每分钟最多 { $requests } 个请求
console_traffic_begin = 一小时前
console_traffic_end = 现在
console_no_version = 没有版本
console_answered = 已响应
console_rejected = 已拒绝
console_failed = 失败
console_causes = 请求被拒绝或失败的原因
console_rejected_apps = 各应用被拒绝的请求

## 签名诊断

console_doctor = 签名诊断
console_doctor_paste = 被拒绝的请求
console_doctor_by_id = 按请求 ID 查找被拒绝的请求
console_examine = 诊断
console_find = 查找
console_field_request = 请求
    .hint = 从请求行开始的原始请求；curl 或 PowerShell 命令，或 curl -v 的输出；fetch(…)；HAR；或 URL。
console_field_app = 应用
    .hint = 请求中没有应用时，填写其标识。
console_field_canonical = 客户端签名的字符串
    .hint = 可以为空。填写后显示第一处差异。
console_field_version = 版本
console_field_status = 状态码
console_field_request_id = 请求 ID
    .hint = 见 X-Request-Id 或错误响应。
console_rejection_gone = 没有网关仍保留此请求，或没有网关拒绝过它。请改为粘贴请求。
console_rejection_params = 参数及其值的字节数
console_rejection_how = 参数的值不会被保留。要查看每一步，请粘贴请求本身。
console_client_address = 客户端
console_backend = 后端
console_doctor_wrong = 网关会拒绝此请求。
console_doctor_right = 就所检查的内容而言，网关会接受此请求。
console_doctor_old = 此请求没有错误，但已过期，不能再次发送。
console_step = 网关的步骤
    .request = 方法、标头和正文的分帧
    .callback = 提供方的重定向（无需签名）
    .app = 应用
    .params = 表单和参数
    .time = 时间
    .sign = 签名
    .route = 版本和路由
    .account = 账户
console_doctor_params = 按签名顺序排列的参数
console_doctor_sent = 发送的形式
console_doctor_signed = 参与签名
console_yes = 是
console_no = 否
console_doctor_canonical = 待签名的字符串
console_doctor_difference = 客户端的字符串在第 { $at } 个字节之后不同：
console_doctor_expected = 正确
console_doctor_found = 客户端
console_doctor_request = 使用当前时间的正确请求

## 实时

console_live = 实时
console_live_now = 实时请求
console_live_script = 在启用脚本的浏览器中，请求会显示在这里。
console_live_on = 本网关的请求结束后会显示在这里。
console_live_off = 连接已断开。浏览器会重试。
console_live_ended = 网关已结束连接：会话已结束，或实时页面过多。请重新加载页面。
console_live_missed = 请求很多：最近一秒有 # 个未显示。请用筛选查看所需的请求。
console_live_rejected = 最近被拒绝的请求
console_rejections_none = 网关启动以来没有拒绝过请求。
console_explain = 解释 { $id }
console_all = 全部
console_request = 请求
console_app = 应用
console_status = 状态码
console_duration = 毫秒
console_app_versions = 最近 30 天调用过的版本
console_app_unused = 没有调用过。
