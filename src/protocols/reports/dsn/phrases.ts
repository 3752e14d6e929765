/**
 * Words by which bounces without fields are recognised, in the languages that servers write. Data for text-report.ts.
 * Every repetition is bounded, because lines may be as long as the text.
 */

const anyOf = (...alternatives: string[]) => new RegExp(alternatives.join('|'), 'iu')

/** `From` of mail systems. */
export const SERVERS = anyOf(
  'mailer-?daemon|post_?master|mail[ .-]?delivery|delivery (?:sub)?system|mdaemon|mail(?:er)? system',
  'mail(?:system)?[ .-]?admin|mmsc ndr|internet mail delivery|microsoft ?exchange|symantec|postoffice|majordomo',
  'no-?reply@.{0,200}(?:bounce|delivery)|邮件系统|系统管理员|メールサーバ',
)

/** A person, or a program for a person, answers or passes on: the rest of the subject is another mail's. */
export const ANSWERS =
  /^\s{0,9}(?:re|aw|antw|sv|vs|ref|rif|odp|fwd?|wg|tr|rv|回复|答复|转发|回覆|轉寄)(?:\[\d{1,3}\])? ?[:：]/iu

/** Subjects of notices of absence, which RFC 3834 §3.1.5 recommends to begin with "Auto:". */
export const AWAY = anyOf(
  'out of (?:the )?office|auto(?:matic|mated)?[ -]?(?:reply|respon[sd]|response|antwort)|away (?:from my|until)|on vacation',
  '^\\s{0,9}(?:auto|automatic) ?:',
  'abwesenheit|automatische antwort|absence du bureau|réponse automatique|respuesta automática|fuera de (?:la )?oficina',
  'risposta automatica|fuori sede|afwezig|автоответ|自动回复|自動回覆|自動応答|自動返信',
)

/** A program that wants the sender to prove that he is a person. */
export const CHALLENGES = anyOf(
  'confirm (?:that )?(?:you|your (?:message|mail|e-?mail|address|identity))|prove (?:that )?you|verify (?:that )?you(?:rself| are|r identity)',
  'not (?:a )?(?:spam|robot|machine)|approved senders?|allowed senders?|whitelist|challenge|captcha|one-time (?:step|process)',
)

/** Subjects that only a bounce has. */
export const FAILED_SUBJECTS = anyOf(
  'undeliver|not deliver|non[- ]?deliver|nondeliverable|unzustellbar|nicht zugestellt|zustellung fehlgeschlagen|non remis|échec',
  'delivery (?:failure|failed|problem|error|has failed|impossible)|delivery (?:status )?notification \\(failure\\)|delivery status notification: error',
  'fail(?:ure|ed) (?:notice|mail|delivery)|mail (?:delivery (?:failed|failure|error)|system error|failed|failure|could not)',
  'returned (?:mail|to sender|message)|return(?:ed|ing) (?:message )?to sender|message you sent blocked|email bounce',
  'could not (?:be delivered|send)|permanent(?:ly)? (?:error|fail)|no se pudo entregar|no entregado|mancata consegna',
  'niet (?:worden )?(?:afgeleverd|bezorgd)|onbestelbaar|не ?доставлен|недостав|退信|投递失败|配信(?:不能|エラー)|送信できません',
  'メール(?:送信|配信|配送)?エラー|エラーメール|宛先不明|不達|niedostarcz|não (?:entregue|pôde ser entregue)',
)

/** Subjects that a delay or a success has too. */
export const REPORT_SUBJECTS = anyOf(
  'delivery (?:status )?(?:notification|report|status)|mail delivery|message (?:status|delayed)|delivery delayed',
  'warning: (?:message|could not)|delayed mail|postmaster notify|non ancora',
)

/** Subjects of warnings. */
export const LATE_SUBJECTS =
  /\(delay\)|(?:delivery|message|mail)[^:]{0,40} delayed|delayed mail|^warning: |notification: warning|still (?:being )?retried/iu

/** Texts of delays; they may also say that delivery "failed so far". */
export const LATE = anyOf(
  'warning (?:message )?only|do(?:es)? not need to re-?send|no action is required (?:on your part|by you)|not yet been delivered',
  '(?:message|mail|delivery)[^.]{0,80} (?:is|has been|was|being) delayed|only a temporary failure|temporary failure report',
  'will (?:keep trying|be (?:retried|tried again|re-?attempted)|continue to (?:try|be attempted)|retry|try again)',
  'could not be delivered (?:for|within) (?:more than |the last )?\\d+ (?:more )?(?:hour|minute)',
  'delivery attempts will continue|(?:message|mail) (?:is )?still undelivered|still (?:be )?trying to deliver|delivery incomplete',
  '(?:is|be|been) (?:kept|queued|held) (?:in|on) the (?:mail ?)?queue|temporary (?:problem|error|failure) delivering|transient non-fatal',
  "noch nicht zugestellt|n'a pas encore été remis|no se ha entregado todavía|ещё не доставлено|まだ配信",
)

/** A server that has given up may mention its earlier tries. */
export const GIVEN_UP = anyOf(
  'permanent(?:ly)? (?:error|fail|fatal)|giv(?:ing|en) up|not going to try again|failed permanently|could not be delivered for too long',
  'retry time(?:out)? (?:not reached for any host after a long|exceeded)|has (?:been )?(?:expired|given up)|undeliverable after',
  'will (?:not|no longer) be (?:re-?)?tried|stopped trying|will be deleted from queue',
)

/** A message has arrived; such a report explains what errors would look like. */
export const SUCCEEDED =
  /(?:was|were|has been|have been) successfully (?:delivered|relayed|sent)|successful mail delivery|\(success\)|\(relay\)/iu

/** Texts of failures. */
export const FAILED = anyOf(
  'hi\\. this is the|permanent(?:ly)? (?:error|fail|fatal)|not going to try again',
  "(?:could|can|was|were|is|has|have|did|does|has been)(?: ?not|n't|n’t) (?:be |been |able to |yet be )?(?:be |reach|receive|deliver|sent|send|transmitted|completed|accept)",
  '(?:unable|failed) to (?:deliver|send|relay)|(?:couldn.t|cannot|can not|could not) (?:be )?(?:reach|deliver|find|sent)',
  'undeliver(?:ed|able)|non-?deliver(?:y|able|ed)',
  'deliver(?:y|ing)(?: (?:to the following (?:recipients?|address(?:es)?)|of|your|the|this|(?:e-?)?mail|message)){0,4} (?:has |was )?(?:failed|failure|error|aborted|problem)',
  'errors?(?: (?:has|have|was|were|had))? ?(?:occurred|encountered)? ?(?:while |in |during |when )?(?:attempting |trying )?(?:to )?deliver(?:ing|y)?',
  'had (?:permanent |fatal |non-?fatal )*(?:delivery )?(?:errors|problems)|delivery (?:errors|problems)|failure reasons?',
  'wasn.t delivered|wasn.t able to deliver|didn.t reach|not reach (?:some|the following)|not (?:been )?delivered|did not receive',
  'your (?:message|mail|e-?mail)[^.]{0,60} (?:was|has been|have been|is) (?:blocked|rejected|refused|returned|bounced|undeliver)',
  '(?:message|mail|recipients?) (?:was|were|has been) (?:rejected|refused|returned|bounced) |returned (?:mail|to (?:the )?sender)',
  'failed addresses follow|no valid recipients?|incorrectly constructed|one or more recipient addresses that were',
  'mailbox (?:unavailable|not found|does not exist|is full)|(?:account|mailbox|address) (?:is|has been) (?:disabled|closed|suspended|inactive|no longer valid)',
  '(?:mailbox|quota|account)[^.]{0,40} (?:exceeds|exceeded|over) (?:its |their |the |allowed )?(?:allowed )?(?:local )?(?:size|quota|limit)',
  '(?:user|recipient|address|mailbox) (?:unknown|does not exist|not (?:found|listed|recognized|recognised))',
  'unknown (?:local )?(?:user|recipient|host|domain)|no such (?:user|mailbox|recipient|host|domain)',
  'invalid (?:final delivery |user |recipient |e-?mail )?(?:user|userid|recipient|address|mailbox)',
  '(?:konnte|kann|wurde)[^.]{0,80} nicht (?:zugestellt|ausgeliefert|übermittelt)|nicht zustellbar|unzustellbar',
  'n.a pas pu être (?:remis|délivré|livré|envoyé)|échec de (?:la )?(?:remise|livraison|distribution)|utilisateur inconnu',
  'no (?:se )?(?:pudo|ha podido|se ha podido)[^.]{0,40} entrega|no (?:ha sido|fue) entregado',
  'non (?:è stato possibile|può essere|ha potuto)[^.]{0,40} (?:recapita|consegna)|mancata consegna',
  'kon niet worden (?:bezorgd|afgeleverd)|niet (?:worden )?(?:bezorgd|afgeleverd)|não (?:pôde|pode|foi)[^.]{0,40} entregue',
  'не (?:может быть|удалось|было|было доставлено)[^.]{0,40}достав|не доставлено|nie (?:mogła|można|została)[^.]{0,60} dostarcz',
  '退信|投递失败|无法(?:投递|送达|发送)|被退回|(?:配信|送信|送達|お届け)(?:できません|できなかった)|届けることができません|見つかりません|存在しません',
)

const COPY_RULE = `[-=*]{2,80}[ \\t]{0,5}(?:${[
  'below this line is a copy',
  '(?:this is|here is|enclosed is|begin) (?:a )?copy',
  'the header',
  '(?:begin|original|forwarded|returned|unsent|undelivered) (?:message|mail)',
  'message (?:header|text)',
  "ursprüngliche|message d'origine|mensaje original",
].join('|')})`
const COPY_LINE = `(?:${[
  '(?:original )?message (?:headers?|text)(?: follows?)?',
  'full headers',
  'header of the (?:original|message)',
  'your (?:original )?message (?:follows|reads)',
  '(?:the )?(?:original|returned|unsent|bounced) (?:message|mail|e-?mail)(?: (?:as )?follows| is below)?',
  '(?:below|here|following) is a copy of the (?:original )?message',
].join('|')})[ \\t]{0,5}[:.]?[ \\t]{0,5}$`
/** Where a report begins to quote what it returns, or to state fields. */
export const COPIES = new RegExp(
  `^[ \\t>|]{0,20}(?:${COPY_RULE}|${COPY_LINE}|return-path: ?<|received: ?(?:from |by |\\()|(?:reporting-mta|final-recipient|original-recipient): ?\\w{1,20};)`,
  'im',
)
