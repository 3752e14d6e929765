/**
 * Replies of servers by whose fault they are, in the forms and languages seen, with what is right for each. `<S>` is the
 * return path, `<D>` its host, `<R>` the recipient.
 */
import type { Category } from '../../../src/receiving/bounces/rules.ts'
import type { Subject } from './mail.ts'

export interface ForeignReply {
  reply: string
  /** Those that are right. */
  categories: readonly Category[]
  suppressed: boolean
}

const replies = (categories: readonly Category[], texts: readonly string[]): ForeignReply[] =>
  texts.map((reply) => ({ reply, categories, suppressed: categories.includes('BOUNCE') }))

export const REPLIES: Readonly<Record<string, readonly ForeignReply[]>> = {
  'address of the sender': replies(
    ['AUTHENTICATION', 'TECHNICAL'],
    [
      '550 5.1.7 <<S>>: Sender address rejected: User unknown in virtual mailbox table',
      '550 5.1.1 <<S>>: Sender address rejected: User unknown in local recipient table',
      '550 5.1.0 <S> sender rejected: no such user',
      '550 Unknown sender <<S>>',
      '553 5.1.7 Invalid MAIL FROM address: mailbox does not exist',
      '550 <S> does not exist',
      '550 5.1.7 <S>',
      '550 5.1.1 Absender <<S>> existiert nicht',
      "550 5.1.1 Expéditeur inconnu : l'utilisateur n'existe pas",
      '550 5.1.1 El remitente no existe',
      '550 5.1.1 Nadawca nieznany',
      '550 5.1.1 Отправитель не существует',
      '550 5.1.1 发件人地址不存在',
      '550 5.1.1 MAIL FROM user unknown',
      '550 5.1.1 your address does not exist',
    ],
  ),
  'DNS of the sender': replies(
    ['AUTHENTICATION', 'TECHNICAL'],
    [
      '553 5.1.8 <<S>>... Domain of sender address <S> does not exist',
      '550 5.1.8 <<S>>: Sender address rejected: Domain not found',
      '550 5.1.1 The domain <D> has no MX or A record',
      '550 5.1.1 <D> does not exist',
      '501 5.1.8 Sender domain must resolve',
      '553 sorry, your envelope sender domain must exist (#5.7.1)',
      '550 5.1.1 Die Absenderdomain existiert nicht',
      '550 5.1.1 cannot resolve your domain',
      '550 5.1.1 Unresolvable domain of the sender',
      '550 5.1.1 域名不存在 <D>',
    ],
  ),
  'callout to the sender': replies(
    ['AUTHENTICATION'],
    [
      '550-Verification failed for <<S>>\r\n550-No such user here\r\n550 Sender verify failed',
      '550 5.1.1 Callout to <<S>> failed: 550 User unknown',
      '550 Originator mailbox not found',
      '550 Could not complete sender verify callout',
      '550 5.1.1 Call-back verification of the return path said: no such mailbox',
    ],
  ),
  session: replies(
    ['RATELIMIT', 'ESPBLOCK'],
    [
      '550 5.7.1 Too many invalid recipients',
      '550 5.1.1 Too many unknown users, closing the session',
      '521 5.7.0 Too many bad commands',
      '554 5.1.1 Directory harvest attack detected',
      '550 5.1.1 Zu viele unbekannte Empfänger',
      '550 5.1.1 Trop de destinataires inconnus',
      '550 5.1.1 Session closed: bad recipients',
      '550 5.1.1 maximum of 10 invalid recipients reached',
      '550 5.1.1 Demasiados usuarios desconocidos en esta sesión',
      '550 5.1.1 Слишком много несуществующих получателей',
    ],
  ),
  rate: replies(
    ['RATELIMIT'],
    [
      '550 5.1.1 <<R>> - 192.0.2.222 has sent to too many recipients this hour. See IB607',
      '550-5.2.1 The user you are trying to contact is receiving mail at a rate that\r\n550 5.2.1 prevents additional messages from being delivered.',
      '552 5.2.1 Account disabled temporarily for exceeding receiving limits',
      '550 5.1.1 You have exceeded the maximum number of messages per day for user <R>',
      '550 5.1.1 Hourly limit of this mailbox reached',
      '550 5.1.1 Slow down, please: unknown user <R>',
      '550 5.1.1 Limite de 100 messages par heure atteinte',
      '550 5.1.1 Grenze von 50 Nachrichten pro Stunde erreicht',
      '550 5.1.1 Limit exceeded',
      '550 5.1.1 Rejected: you sent 500 mails today',
    ],
  ),
  'a list of blocked addresses': replies(
    ['BLACKLISTED'],
    [
      '550 5.1.1 <<R>> rejected: 192.0.2.1 is on a block list',
      '550 5.1.1 Mail from 192.0.2.1 blocked by bl.example.net',
      '550 5.7.1 IP address blacklisted by recipient',
      '550 5.2.1 Mailbox unavailable. Your IP address 192.0.2.1 is blacklisted using DUL',
      '550 5.1.1 rejected, see http://www.spamhaus.org/query/bl?ip=192.0.2.1',
      '550 5.1.1 Ihre IP steht auf der schwarzen Liste',
      '550 5.1.1 Votre adresse IP figure dans une liste noire',
      '550 5.1.1 Su dirección IP está en una lista negra',
    ],
  ),
  'our host': replies(
    ['ESPBLOCK', 'AUTHENTICATION', 'BLACKLISTED'],
    [
      '550 5.1.1 Client host rejected: Access denied',
      '550 5.1.1 Connections from your IP are refused',
      '550 5.1.1 <<R>> rejected, your server 192.0.2.1 has no reverse DNS',
      '554 5.2.1 You are not allowed to connect',
      '550 5.1.1 Ihr Server wurde gesperrt',
      '550 5.1.1 Votre serveur est bloqué',
    ],
  ),
  content: replies(
    ['CONTENT', 'ESPBLOCK'],
    [
      '550 5.1.1 <<R>> Message rejected as spam',
      '550 5.2.1 Message content rejected',
      '550 5.1.1 Denied by policy',
      '550 5.1.1 Blocked',
      '550 5.1.1 message refused by filter',
      '550 5.1.1 attachment refused',
      '554 5.1.1 Virus found in message for <R>',
    ],
  ),
  authentication: replies(
    ['AUTHENTICATION'],
    [
      '550 5.1.1 SPF check failed for <R>',
      '550 5.1.1 Rejected by the DMARC policy of <D>',
      '550 5.1.1 Please turn on SMTP Authentication in your mail client',
    ],
  ),
  'the recipient chooses': replies(
    ['ESPBLOCK'],
    [
      '550 5.1.1 RCP-P2 http://postmaster.example/codes#rcp Refused due to recipient preferences',
      '550 5.1.1 You have been blocked by the recipient',
      '550 5.4.1 Recipient address rejected: Access denied',
    ],
  ),
  'no such mailbox': replies(
    ['BOUNCE'],
    [
      '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient <R> not found by SMTP address lookup',
      '550 5.1.351 Remote server returned unknown recipient or mailbox unavailable -> 550 <<R>>: User unknown',
      '550 5.5.0 Requested action not taken: mailbox unavailable',
      '553 5.3.0 <<R>>... No such user here',
      '550 5.4.1 No such user <R>',
      '550 Requested action not taken: mailbox unavailable\r\n550 For explanation visit https://postmaster.gmx.net/en/error-messages',
      '550 Invalid Recipient - https://community.mimecast.com/docs/DOC-1369#550',
      '550 User <R> does not have an account here',
      '550 nosuchuser',
      '550 recipient not on file',
      '550 Ukendt bruger',
      '550 Neznámý uživatel',
      '550 Bilinmeyen kullanıcı',
      '550 5.7.1 No such user!',
      '550 5.2.0 Unknown user <R>',
      '550 <<R>>... User not exist',
      '550 <R> is not a valid or known user',
      '550 5.1.1 not a valid recipient: <R>',
      '550 User bob (<R>) not listed in Domino Directory',
      '550 User not listed in public Name & Address Book',
      "550 5.1.1 That account doesn't exist",
      '550 5.1.1 <<R>>: user does not exist',
      '550 <<R>> not found',
      '550 Utilisateur inconnu !',
      "550 5.1.1 L'adresse <R> n'existe pas",
      '550 Empfänger <R> unbekannt',
      '550 5.1.1 Benutzer existiert nicht',
      '550 El usuario <R> no existe',
      '550 Destinatario sconosciuto',
      '550 O destinatário não existe',
      '550 Gebruiker onbekend',
      '550 Użytkownik nieznany',
      '550 Пользователь не найден',
      '550 用户不存在',
      '550 宛先のメールアドレスが見つかりません',
      '550 5.1.1 unknown user <<R>>; message from <<S>>',
      '550 No hay ningún usuario con ese nombre',
      '550 Такого пользователя нет',
      '550 5.1.1 <<R>>',
    ],
  ),
  'closed for good': replies(
    ['BOUNCE'],
    [
      '550 5.2.1 Mailbox disabled, not accepting messages',
      '550 This account has been closed',
      '551 5.1.6 recipient no longer on server: <R>',
      '550 Das Postfach wurde gelöscht',
    ],
  ),
  'closed for a time': replies(
    ['MAILBOXFULL'],
    [
      '550 Mailbox is frozen. See http://mail.example/err/3/',
      '552 5.5.0 mailbox size limit exceeded',
      '550 User has exhausted allowed storage space',
      '525 5.7.13 Disabled recipient address',
      '550 5.1.1 <<R>> inactive account',
      '550 5.2.1 The account is suspended',
      '550 5.7.1 <<R>>: Recipient address rejected: User <R> temporary locked. Please try again later!',
      '550 Le compte du destinataire est bloque',
      '550 Das Postfach ist gesperrt',
      '550 La cuenta está suspendida',
    ],
  ),
  full: replies(
    ['MAILBOXFULL'],
    [
      '552 5.1.1 disk space quota exceeded',
      "550 The user's mailfolder is full",
      '552 sorry, mailbox <R> is over quota temporarily (#5.1.1)',
      '552 5.2.1 Over quota',
      '552 Boîte du destinataire pleine',
      '552 Das Postfach ist voll',
      '552 El buzón está lleno',
      '552 Почтовый ящик переполнен',
    ],
  ),
  'words that say nothing': replies(
    ['GENERIC', 'ESPBLOCK', 'TECHNICAL'],
    [
      '550 whatever',
      '550 5.0.0 Not today',
      '550 Nope, <R>',
      '554 Transaction failed',
      "550 5.3.0 procmail: Couldn't create /var/spool/mail/bob id: No such user",
    ],
  ),
}

export const spoken = (text: string, { recipient, returnPath }: Pick<Subject, 'recipient' | 'returnPath'>) =>
  text
    .replaceAll('<S>', returnPath)
    .replaceAll('<D>', returnPath.slice(returnPath.indexOf('@') + 1))
    .replaceAll('<R>', recipient)

/** What a reporter adds to a reply that has an enhanced code: its own guess, in `Status`. */
export function reportOf(subject: Subject, reply: string, status: string): string {
  const text = reply.replaceAll('\r\n', '\n ')
  return [
    'From: MAILER-DAEMON@relay.example',
    `To: ${subject.returnPath}`,
    'Subject: Returned mail: see transcript for details',
    'Auto-Submitted: auto-generated (failure)',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=delivery-status; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'The original message was received.',
    '--b',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; relay.example',
    '',
    `Final-Recipient: RFC822; ${subject.recipient}`,
    'Action: failed',
    `Status: ${status}`,
    'Remote-MTA: DNS; mx.there.example',
    `Diagnostic-Code: SMTP; ${text}`,
    '--b',
    'Content-Type: text/rfc822-headers',
    '',
    subject.header,
    '--b--',
    '',
  ].join('\n')
}
