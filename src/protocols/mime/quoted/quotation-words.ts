/**
 * The words by which mail programs introduce a quotation, in the languages that they speak: data of `quotations.ts`.
 * Every pattern is tried on a short text (see `PATTERN_TEXT_MAX` there) and takes time in proportion to it.
 */

/** Not within a longer word; `\b` knows ASCII only. */
const word = (alternatives: string) => `(?<![\\p{L}\\p{M}])(?:${alternatives})(?![\\p{L}\\p{M}])`

/** Verbs of "Ann wrote", in languages that write blanks. A suffix in brackets is that of Slavic languages: "napisał(a)". */
const WROTE = word(
  `wrote|writes|schrieb|schreef|geschreven|verzond|[aà] (?:é|e)crit|escribi[oó]|va escriure|ha scritto|scrive|escreveu|skrev|skrifaði|
  napisał[aeo]?|pisze|napsala?|napísala?|napisala?|napisao|написал[аи]?|писал[аи]?|пишет|написав|пише|написа|kirjoitti|kirjutas|
  rakstīja|parašė|rašė|yazdı|írta|a scris|έγραψε|đã viết|menulis|כתב|כתבה|كتب`.replace(/\s*\n\s*/g, ''),
)
/** Words of the above after which name and address may follow: "Am 1. Juni schrieb Ann:". */
const WROTE_BEFORE_NAME = word(
  'schrieb|schreef|heeft|geschreven|skrev|napsala?|napísala?|napisał[aeo]?|pisze|написала?|kirjoitti|írta|כתב|כתבה|كتب',
)
/** Languages without blanks between words. */
const WROTE_JOINED =
  'のメール|のメッセージ|は書きました|が書きました|書きました|写道|寫道|写了|님이 작성|작성|썼습니다|เขียน'
const COLON = '[:：]'

/** "... wrote:" at the end; the colon may be missing. */
export const WROTE_LAST = new RegExp(
  `(?:(?:${WROTE}|(?<=[>)]\\s?)sent)(?:\\s?\\(\\p{L}{1,2}\\))?|(?:${WROTE_JOINED})(?:했습니다|함)?)\\s?${COLON}?[-–—]*$`,
  'iu',
)
/** "... schrieb Ann:", "... wrote on 01/06/2026 12:00:" */
export const WROTE_INSIDE = new RegExp(
  `${WROTE_BEFORE_NAME}.*${COLON}$|${word('wrote|schrieb')} (?:on|am) [^\\p{L}]*(?:[ap]m)?\\s?${COLON}$`,
  'iu',
)
/** The verb anywhere. */
export const WROTE_ANYWHERE = new RegExp(`${WROTE}|${WROTE_JOINED}`, 'iu')
/** Languages whose sentence may begin with the name: on one line only, and with a date or an address. */
export const WROTE_AFTER_NAME = new RegExp(
  `(?:${word('написал[аи]?|пишет|написав|kirjoitti|yazdı|írta')}|${WROTE_JOINED})(?:했습니다|함)?\\s?${COLON}$|<[^<>\\s]+@[^<>\\s]+>\\s(?:${WROTE})\\s?${COLON}$`,
  'iu',
)

/** First words of an attribution; those of one letter are prepositions. */
export const OPENING =
  /^(?:[-–—_]{2,}\s*)?(?:on|am|le|el|il|in data|em|a|à|op|den|på|fra|w dniu|dnia|dne|dňa|vào|lúc|pada|la data de|dana|la|pe|în|στις|в|у|kl|sent from|בתאריך|ב|في|quoting|zitat von|citando|citazione di|citat(?:ion)? de|selon)(?:\s|$)/iu

/** "Quoting Ann <a@example.com>:", without a verb. */
export const QUOTING =
  /^(?:quoting|zitat von|citando|citazione di|citation de|citeren|cytowanie) .*@.*[:：]$/iu

const DASHES = '[-–—‐‑‒―─_*=]'

/** A rule with words in it: "-----Original Message-----", with what a program may add on the same line. */
export const TITLED_RULE = new RegExp(
  `^${DASHES}{2,}\\s*((?:[^-–—‐‑‒―─_*=]|(?<=\\p{L})-(?=\\p{L})){3,40}?)\\s*${DASHES}{2,}(.*)$`,
  'u',
)
/** A rule without words. */
export const BARE_RULE = new RegExp(`^${DASHES}{4,}$`, 'u')
/** "---- Ann wrote ----", "------On 12/29/1987 17:32, Ann wrote-----" */
export const DASHED_WROTE = new RegExp(
  `^${DASHES}{2,}.*(?:${WROTE}(?:\\(\\p{L}{1,2}\\))?|${WROTE_JOINED})\\s*:?\\s*${DASHES}{2,}$`,
  'iu',
)

const MESSAGE =
  /message|nachricht|mensaje|messaggio|mensagem|missatge|bericht|meddelelse|besked|melding|meddelande|viesti|wiadomoś|zpráv|správ|üzenet|levél|сообщени|письм|повідомлен|лист|порука|poruka|sporočil|mesaj|ileti|μήνυμα|thư|tin nhắn|pesan|e-?mail|邮件|郵件|メッセージ|メール|메시지|메일|ข้อความ|הודעה|رسالة/iu
const ORIGINAL =
  /origin|reply|antwort|ursprünglich|oorspronkelijk|oprindelig|opprinnelig|ursprunglig|alkuperäi|oryginaln|původní|pôvodn|eredeti|исходн|оригин|початков|оригін|izvorn|orijinal|özgün|αρχικ|gốc|asli|原始|原|元の|オリジナル|원본|ต้นฉบับ|מקורית|أصلية/iu
const FORWARDED =
  /forward|weitergeleitet|transféré|réexpédié|reenviad|inoltrat|encaminhad|reencaminhad|doorgestuurd|videresend|vidarebefordra|välitetty|edelleenlähetetty|przekazan|przesłan|přepos|továbbított|пересл|переадрес|iletilen|yönlendiril|προωθ|chuyển tiếp|diteruskan|转发|轉寄|轉發|転送|전달|הועברה/iu

/** What a rule with these words begins; null: an ordinary heading. */
export function titleKind(words: string): 'original' | 'forwarded' | null {
  if (!MESSAGE.test(words)) return null
  if (FORWARDED.test(words)) return 'forwarded'
  return ORIGINAL.test(words) ? 'original' : null
}

/** Apple Mail has no dashes. */
export const FORWARD_SENTENCE =
  /^(?:begin forwarded message|anfang der weitergeleiteten (?:nachricht|e-mail)|début du message (?:réexpédié|transféré)|inizio messaggio inoltrato|inicio del mensaje reenviado|início da mensagem (?:reencaminhada|encaminhada)|begin doorgestuurd bericht|start på videresendt besked|vidarebefordrat (?:brev|meddelande)|начало переадресованного сообщения|下面是被转发的邮件|転送されたメッセージ)\s?[:：]$/iu

export type HeaderField = 'from' | 'date' | 'to' | 'copy' | 'subject'

const LABELS: Record<HeaderField, string> = {
  from: `from|von|absender|de|de la|expéditeur|remitente|remetente|da|mittente|van|afzender|fra|afsender|avsender|från|avsändare|od|nadawca|
    odesílatel|odosielateľ|od koho|ze?|от|от кого|отправитель|від|від кого|lähettäjä|feladó|kimden|gönderen|από|từ|người gửi|dari|saatja|nuo|no|
    发件人|寄件者|寄件人|差出人|送信者|送信元|보낸 ?사람|발신|จาก|מאת|من`,
  date: `date|sent|sent at|sent on|datum|gesendet(?: am)?|envoyé(?: le)?|message du|enviado(?: el| em)?|enviada em|fecha|data|inviato(?: il)?|data invio|
    verzonden|dato|sendt|skickat|wysłano|wysłane|odesláno|odoslané|dátum|отправлено|дата|надіслано|päiväys|päivämäärä|lähetetty|elküldve|küldve|
    tarih|gönderme tarihi|gönderildi|trimis|ημερομηνία|στάλθηκε|ngày|đã gửi|tanggal|dikirim|发送时间|发送日期|日期|寄件日期|傳送時間|送信日時|日付|日時|
    보낸 ?날짜|날짜|วันที่|תאריך|נשלח|التاريخ|تاريخ`,
  to: `to|an|empfänger|à|a|destinataire|para|destinatario|destinatário|aan|til|till|do|komu|кому|получатель|vastaanottaja|címzett|kime|alıcı|către|
    catre|προς|tới|đến|người nhận|kepada|收件人|收件者|宛先|받는 ?사람|수신|ถึง|אל|إلى`,
  copy: `b?cc|c\\.c\\.|kopie|kopie an|copie(?: à)?|copia|cópia|kopia|kopi|kopio|копия|копія|másolatot kap|bilgi|κοιν|抄送|副本|참조|สำเนา|עותק`,
  subject: `subject|betreff|objet|sujet|asunto|oggetto|assunto|onderwerp|emne|ämne|temat|předmět|predmet|тема|aihe|tárgy|konu|subiect|θέμα|chủ đề|
    tiêu đề|subjek|perihal|主题|主旨|件名|제목|เรื่อง|נושא|الموضوع`,
}
const HEADER_FIELD = new RegExp(
  `^[*_]{0,2}(?:${Object.values(LABELS)
    .map((labels) => `(${labels.replace(/\s*\n\s*/g, '')})`)
    .join('|')})\\s?[*_]{0,2}\\s?${COLON}`,
  'iu',
)

const FIELDS = Object.keys(LABELS) as HeaderField[]
/** No label is longer. */
const LABEL_MAX = 40

/** The field whose label begins the text; null for none. */
export function headerField(text: string): HeaderField | null {
  const label = text.slice(0, LABEL_MAX)
  if (!label.includes(':') && !label.includes('：')) return null
  const groups = HEADER_FIELD.exec(label)
  return (groups && FIELDS.find((_field, index) => groups[index + 1] !== undefined)) ?? null
}
