/** The line that a telephone or a mail program puts below what was written: "Sent from my iPhone". */

const DEVICE_LINE_MAX = 120

/** What it begins with, by language; what it is called follows. */
const SENT_FROM =
  /^(?:sent (?:from|with|via|using)|get outlook for|download outlook for|(?:diese (?:nachricht|e-?mail) wurde )?(?:gesendet|verschickt|geschickt) (?:mit|von|aus|via)|hol(?:en sie sich|e dir)? outlook für|outlook für|envoyé (?:de|depuis|à partir|avec|par|via)|obtenez outlook pour|télécharge[rz] outlook pour|enviado (?:desde|do|de|da|com|con|por|via|vía|a partir)|obtener outlook para|obter o outlook para|inviato (?:da|dal|con|tramite)|scarica outlook per|ottieni outlook per|(?:verzonden|verstuurd) (?:vanaf|vanuit|met|via)|outlook voor|skickat (?:från|med)|skickades från|hämta outlook för|sendt (?:fra|med|via)|hent outlook (?:til|for)|få outlook (?:til|for)|lähetetty|hanki outlook|wysłan[eoya] (?:z|ze|przez|za pomocą)|pobierz|odesláno|odoslané|elküldve|отправлено|послано|надіслано|dikirim dari|đã gửi từ|發自|发自)(?=[\s'’]|$|我)/i
/** Languages that put the verb last: the text before it, or the whole, if it names a device. */
const FROM_SENT =
  /^(?:diese (?:nachricht|e-?mail|mail) wurde )?(?:von|aus|mit)\s(.{1,60}?)\s(?:gesendet|verschickt|geschickt)\.?$/i
const DEVICE_SENT =
  /(?:iphone|ipad|android|galaxy|xperia|outlook|mail|手机|手機|スマートフォン|携帯|휴대|스마트폰).{0,20}(?:から送信(?:されました)?|에서 보냄|에서 보냈습니다|發送|发送|傳送|gönderildi|küldve)[.。]?$/i

/** Words of such a line that have no capital. */
const SMALL_WORDS = new Set(
  `my your the a an on for with via using from and by in of at new app mobile phone smartphone cellphone cell tablet handheld device telephone
  wireless secure free encrypted mail email e-mail webmail laptop computer android windows iphone ipad ipod blackberry outlook mobil mobile handy mobiltelefon
  meinem meiner mein dem der die das mit von für aus gerät telefon smartphone tablett
  mon ma le la un une de du depuis pour avec partir téléphone portable appareil mobile ordiphone
  mi el los para con desde dispositivo móvil teléfono celular tableta
  meu minha o do da dos para com celular telemóvel aparelho
  dal mio il lo per con cellulare telefono dispositivo
  mijn de het een voor met vanaf telefoon mobiel toestel
  min mit mitt från för fra til for med mobil telefon enhet enhed
  z mojego ze dla telefonu urządzenia komórki
  с со из моего мобильного телефона устройства мобильной мобильных почты для на
  của tôi từ cho`.split(/\s+/),
)
const OWN =
  /^\s*(?:my|mon|ma|mi|il mio|dal mio|mio|meu|minha|meine[mr]?|mein|mijn|min|mitt|mojego|моего|我的)(?![\p{L}\p{M}])/iu
const DEVICE =
  /iphon|ipad|ipod|android|samsung|galaxy|huawei|xiaomi|redmi|oneplus|nokia|lumia|xperia|motorola|blackberry|windows|outlook|yahoo|proton|tutanota|yandex|яндекс|почт|mail|phone|mobi|tablet|wireless|device|telefo|téléphone|teléfono|celular|cellulare|appareil|dispositivo|laptop|computer|(?<!\p{L})(?:app|aol|gmx|htc|lg|lte|[45]g|mac|pc|handy|gerät)(?!\p{L})/iu
/** What people add themselves. */
const EXCUSE =
  /^(?:please |bitte |kindly )?(?:excuse|pardon|forgive|apolog|sorry|ignore|entschuldig|verzeih|tippfehler|excusez|désolé|disculp|perdon|desculp|scus|beg |typos|brevity|short)/i

/** Whether the trimmed line says from which device or program it was sent, and is not a sentence with such words. */
export function isDeviceLine(line: string): boolean {
  if (line.length > DEVICE_LINE_MAX) return false
  if (DEVICE_SENT.test(line)) return true
  const start = SENT_FROM.exec(line)?.[0]
  const named = start === undefined ? FROM_SENT.exec(line)?.[1] : line.slice(start.length)
  if (named === undefined) return false
  // A link, and what follows the name
  const [name = '', rest = ''] = named
    .replace(/[<([]\s*https?:.*$/i, '')
    .split(/\s*(?:[.,;:!。]|\s[-–—/|]\s)\s*(?=\s|$)(.*)/su)
  if (rest.trim() !== '' && !EXCUSE.test(rest.trim())) return false
  const words = name.trim().split(/\s+/)
  if (!words.every(isName)) return false
  return isFamiliar(name) || hasLink(named) || (words.length === 1 && rest === '' && !named.endsWith('.'))
}

/** Without any of these, words with capitals may name a town, a day or a courier. */
const isFamiliar = (name: string) => OWN.test(name) || DEVICE.test(name)
const hasLink = (named: string) => /[<([]\s*https?:/i.test(named)

/** A proper name ("iPhone", "4G", "Yahoo!", "Почты"), or a word of the list. */
function isName(word: string): boolean {
  if (word === '' || SMALL_WORDS.has(word.toLowerCase())) return true
  // Scripts without capitals have no blanks between words either.
  return /[\p{Lu}\p{Lo}\d]/u.test(word) || !/\p{L}/u.test(word)
}
