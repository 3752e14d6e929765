import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stripReply } from './stripped.ts'

const replies: [name: string, text: string, kept: string, signature?: string][] = [
  ['nothing quoted', 'Hello\r\nworld\r\n', 'Hello\nworld'],
  ['lines that begin with >', 'Yes\n\n> Really?\n>> Sure', 'Yes'],
  ['"On ... wrote:" over quoted lines', 'Yes\n\nOn Mon, Jun 1, 2026, Ann <a@x.de> wrote:\n> Really?', 'Yes'],
  ['the same, wrapped', 'Yes\n\nOn Mon, Jun 1, 2026 at 12:00 PM Ann\n<a@x.de>\nwrote:\n\n> Really?', 'Yes'],
  ['the same over unmarked text', 'Yes\n\nOn 2026-06-01 Ann wrote:\nReally?\n', 'Yes'],
  ['an answer below', 'On 2026-06-01 Ann wrote:\n> Really?\n\nYes', 'Yes'],
  ['answers in between', '> One?\n1\n> Two?\n2', '1\n2'],
  ['German', 'Ja\n\nAm 01.06.2026 um 12:00 schrieb Ann:\n> Echt?', 'Ja'],
  ['French', 'Oui\n\nLe lun. 1 juin 2026 à 12:00, Ann a écrit :\n> Vrai ?', 'Oui'],
  ['Spanish', 'Sí\n\nEl lun, 1 jun 2026 a las 12:00, Ann escribió:\n> ¿?', 'Sí'],
  ['Italian', 'Sì\n\nIl giorno lun 1 giu 2026 Ann ha scritto:\n> ?', 'Sì'],
  ['Portuguese', 'Sim\n\nEm seg., 1 de jun. de 2026, Ann escreveu:\n> ?', 'Sim'],
  ['Dutch', 'Ja\n\nOp ma 1 jun 2026 om 12:00 schreef Ann:\n> ?', 'Ja'],
  ['Polish', 'Tak\n\nW dniu 01.06.2026 o 12:00, Ann pisze:\n> ?', 'Tak'],
  ['Russian', 'Да\n\n1 июня 2026 г., Анна написала:\n> ?', 'Да'],
  ['Chinese', '好\n\nAnn 于2026年6月1日写道：\n> ?', '好'],
  ['an Outlook separator', 'Yes\n\n-----Original Message-----\nFrom: Ann\nReally?', 'Yes'],
  ['a German Outlook separator', 'Ja\n\n-----Ursprüngliche Nachricht-----\nVon: Ann\nEcht?', 'Ja'],
  [
    'an Outlook header block',
    'Yes\n\n________________________________\nFrom: Ann\nSent: Monday\nTo: Bob\nSubject: x\n\nReally?',
    'Yes',
  ],
  ['the header block without a line', 'Ja\n\nVon: Ann\nGesendet: Montag\nAn: Bob\nBetreff: x\n\nEcht?', 'Ja'],
  ['forwarded mail below', 'See\n\n---------- Forwarded message ---------\nFrom: Ann\n> x', 'See'],
  [
    'forwarded mail alone',
    '---------- Forwarded message ---------\nFrom: Ann\n> x',
    '---------- Forwarded message ---------\nFrom: Ann\n> x',
  ],
  ['nothing but quoted lines', '> One\n> Two', '> One\n> Two'],
  ['Swedish', 'Ja\n\nDen tis 2 juni 2026 kl 12:00 skrev Ann <a@x.se>:\n> Va?', 'Ja'],
  [
    'ordinary text that resembles',
    'On Monday I wrote:\nFrom: here to there\nx > y',
    'On Monday I wrote:\nFrom: here to there\nx > y',
  ],
  ['the standard mark', 'Hi\n\n-- \nAnn\nCEO', 'Hi', '-- \nAnn\nCEO'],
  ['a mark without its blank', 'Hi\n--\nAnn', 'Hi', '--\nAnn'],
  ['closing words', 'Hi\n\nBest regards,\nAnn', 'Hi', 'Best regards,\nAnn'],
  [
    'German closing words',
    'Hallo\n\nMit freundlichen Grüßen\nAnn Lee',
    'Hallo',
    'Mit freundlichen Grüßen\nAnn Lee',
  ],
  ['a telephone', 'Hi\n\nSent from my iPhone', 'Hi', 'Sent from my iPhone'],
  ['a signature above the quotation', 'Hi\n\n-- \nAnn\n\nOn 2026-06-01 Bob wrote:\n> x', 'Hi', '-- \nAnn'],
  ['thanks alone, kept', 'Thanks', 'Thanks'],
  [
    'thanks before long text, kept',
    `Hi\nThanks,\n${'word '.repeat(30)}`,
    `Hi\nThanks,\n${'word '.repeat(30).trim()}`,
  ],
  // The public service's own example of a posted message
  [
    'closing words over a quotation',
    'Hi Alice,\n\nThis is Bob.\n\nThanks,\nBob\n\nOn 04/26/2013 11:29 AM, Alice wrote:\n> Hi Bob,\n> x\n',
    'Hi Alice,\n\nThis is Bob.',
    'Thanks,\nBob',
  ],
]
for (const [name, text, kept, signature = ''] of replies) {
  test(`a reply with ${name}`, () => assert.deepEqual(stripReply(text), { text: kept, signature }))
}

/** "Ann wrote", as mail programs say it: over marked lines, over unmarked ones, and wrapped. */
const attributions = [
  'On Mon, Jun 1, 2026 at 12:00 PM Ann Lee <ann@there.example> wrote:',
  'On Monday, June 1, 2026, 12:00:00 PM GMT+2, Ann Lee <ann@there.example> wrote:',
  'On 2026-06-01 12:00, Ann Lee wrote:',
  '----- On Jun 1, 2026, at 12:00 PM, Ann Lee ann@there.example wrote:',
  '---- On Mon, 01 Jun 2026 12:00:00 +0200 Ann <ann@there.example> wrote ---',
  '---- Ann Lee wrote ----',
  'Ann Lee/ORG wrote on 06/01/2026 12:00:00 PM:',
  'Quoting Ann Lee <ann@there.example>:',
  'Jun 1, 2026, 12:00 by ann@there.example:',
  '2026-06-01 12:00 GMT+02:00 Ann Lee <ann@there.example>:',
  'Sent from Samsung Mobile Ann Lee <ann@there.example> wrote:',
  'Am Mo., 1. Juni 2026 um 12:00 Uhr schrieb Ann Lee <ann@there.example>:',
  'Ann Lee <ann@there.example> schrieb am Mo., 1. Juni 2026, 12:00:',
  '-------- Ursprüngliche Nachricht --------',
  'Le lun. 1 juin 2026 à 12:00, Ann Lee <ann@there.example> a écrit :',
  '-------- Message d’origine --------',
  'El lun, 1 jun 2026 a las 12:00, Ann Lee (<ann@there.example>) escribió:',
  'Il giorno lun 1 giu 2026 alle ore 12:00 Ann Lee <ann@there.example> ha scritto:',
  'In data 1 giugno 2026 12:00:00 "Ann Lee" <ann@there.example> ha scritto:',
  'Em seg., 1 de jun. de 2026 às 12:00, Ann Lee <ann@there.example> escreveu:',
  'Op 1 juni 2026 om 12:00 heeft Ann <ann@there.example> het volgende geschreven:',
  'pon., 1 cze 2026 o 12:00 Ann Lee <ann@there.example> napisał(a):',
  'W dniu 1 czerwca 2026 12:00 użytkownik Ann <ann@there.example> napisał:',
  'Den mån 1 juni 2026 kl 12:00 skrev Ann Lee <ann@there.example>:',
  'man. 1. jun. 2026 kl. 12.00 skrev Ann Lee <ann@there.example>:',
  'På 1. juni 2026 kl. 12:00:00, Ann (ann@there.example) skrev:',
  '-------- Oprindelig besked --------',
  '-------- Opprinnelig melding --------',
  'ma 1. kesäk. 2026 klo 12.00 Ann Lee (ann@there.example) kirjoitti:',
  'пн, 1 июн. 2026 г. в 12:00, Анна <ann@there.example>:',
  '01.06.2026 12:00 пользователь "Анна" <ann@there.example> написал:',
  'Понедельник, 1 июня 2026, 12:00 +03:00 от Анна <ann@there.example>:',
  '01.06.2026, 12:00, "Анна" <ann@there.example>:',
  '-------- Исходное сообщение --------',
  'на пн, 1 юни 2026 г. в 12:00 Ана <ann@there.example> написа:',
  'po 1. 6. 2026 v 12:00 odesílatel Ann Lee <ann@there.example> napsal:',
  '2026. 06. 01. 12:00 keltezéssel, Ann írta:',
  '1 Haz 2026 Pzt, saat 12:00 tarihinde Ann <ann@there.example> şunu yazdı:',
  'În lun., 1 iun. 2026 la 12:00, Ann <ann@there.example> a scris:',
  'Στις Δευ 1 Ιουν 2026 στις 12:00 μ.μ., ο χρήστης Ann <ann@there.example> έγραψε:',
  'Vào Th 2, 1 thg 6, 2026 vào lúc 12:00 Ann Lee <ann@there.example> đã viết:',
  'Pada tanggal Sen, 1 Jun 2026 pukul 12.00 Ann <ann@there.example> menulis:',
  '2026年6月1日(月) 12:00 Ann Lee <ann@there.example>:',
  '2026年6月1日 12:00 Ann <ann@there.example> さんは書きました:',
  'Ann Lee <ann@there.example> 于2026年6月1日周一 12:00写道：',
  '在 2026年6月1日，12:00，Ann <ann@there.example> 写道：',
  '------------------ 原始邮件 ------------------',
  '2026년 6월 1일 (월) 오후 12:00, Ann Lee <ann@there.example>님이 작성:',
  'בתאריך יום ב׳, 1 ביוני 2026 ב-12:00 מאת \u202aAnn Lee\u202c\u200f <\u202aann@there.example\u202c\u200f>:\u202c',
]
for (const attribution of attributions) {
  test(`the attribution ${attribution}`, () => {
    const forms = [`${attribution}\n> Old`, `${attribution}\n\nOld\nand old`]
    const address = attribution.search(/(?<=[<(])\u202a?ann@/)
    if (address > 0) forms.push(`${attribution.slice(0, address)}\n${attribution.slice(address)}\n\n> Old`)
    const last = attribution.lastIndexOf(' ')
    if (!attribution.startsWith('--'))
      forms.push(`${attribution.slice(0, last)}\n${attribution.slice(last + 1)}\n> Old`)
    for (const form of forms)
      assert.deepEqual(stripReply(`Yes\n\n${form}\n`), { text: 'Yes', signature: '' }, form)
  })
}

const headerBlocks = [
  'From: Ann Lee\nSent: Monday, June 1, 2026 12:00 PM\nTo: Bob\nSubject: x',
  'Date: Mon, 1 Jun 2026 12:00:00 +0200\nTo: ann@there.example',
  '*From:* Ann [mailto:\nann@there.example]\n*Sent:* Monday\n*To:* Bob\n*Subject:* x',
  'Von: Ann\nGesendet: Montag, 1. Juni 2026 12:00\nAn: Bob\nBetreff: x',
  'De : Ann <ann@there.example>\nEnvoyé : lundi 1 juin 2026 12:00\nÀ : Bob\nObjet : x',
  'De: Ann\nEnviado el: lunes, 1 de junio de 2026\nPara: Bob\nAsunto: x',
  'Da: Ann <ann@there.example>\nInviato: lunedì 1 giugno 2026 12:00\nA: Bob\nOggetto: x',
  'Van: Ann\nVerzonden: maandag\nAan: Bob\nOnderwerp: x',
  'Fra: Ann\nSendt: 1. juni 2026 12:00\nTil: Bob\nEmne: x',
  'Från: Ann\nSkickat: den 1 juni 2026 12:00\nTill: Bob\nÄmne: x',
  'Od: Ann\nWysłano: 1 czerwca 2026 12:00\nDo: Bob\nTemat: x',
  'От: Анна\nОтправлено: 1 июня 2026 г. 12:00\nКому: Bob\nТема: x',
  '发件人: Ann\n发送时间: 2026年6月1日 12:00\n收件人: Bob\n主题: x',
  '差出人: Ann\n送信日時: 2026年6月1日 12:00\n宛先: Bob\n件名: x',
  '보낸 사람: Ann\n보낸 날짜: 2026년 6월 1일\n받는 사람: Bob\n제목: x',
  '____________\nFrom: Ann\nSent: Monday',
  '-----Original Message-----From: Ann <ann@there.example> Date: 6/1/26 12:00',
]
for (const block of headerBlocks) {
  test(`the header block ${JSON.stringify(block)}`, () =>
    assert.deepEqual(stripReply(`Yes\n\n${block}\n\nOld\n`), { text: 'Yes', signature: '' }))
}

const ownTexts = [
  'In May 2019 Ann wrote:\nwhat I repeat here',
  'On Monday I wrote:\nthis and that',
  'I shall be there.\nOn page 3 the author wrote:\nno',
  'From: Berlin\nTo: Paris\nDate: any day in May',
  'Invitation:\n\nDate: Wednesday 3, October 2011\nTime: 7 : 00am\nAddress: 130 Fox St\n\nBring your ID.',
  'Please fill in:\n\n---------- Enter your message below ----------\n\nAll is well.',
  'One\n\n----\n\nTwo',
  'Look here:\n>>> https://there.example <<<\nand here',
  'On 5/5/2026 the following was sent:\nthe list',
  'Trips\n-----\nFrom: Berlin\nTo: Paris',
  'It was sent on 2026-06-01 at 10:00 to ann@there.example:\nthe list',
]
for (const text of ownTexts)
  test(`own text ${JSON.stringify(text)}`, () => assert.deepEqual(stripReply(text), { text, signature: '' }))

const mixed: [name: string, text: string, kept: string][] = [
  ['one blank line where a quotation was', 'One\n\n> q\n\nTwo', 'One\n\nTwo'],
  ['an attribution after text on its line', 'Yes. On Mon, 1 Jun 2026, Ann wrote:\n> q', 'Yes.'],
  ['lines wrapped off marked ones', `Yes\n> ${'word '.repeat(12)}and\nthe rest of it\n> q`, 'Yes'],
  ['a link wrapped off a marked line', 'Yes\n> see (https://there.example/a\nbc)\n> q', 'Yes'],
  ['a short attribution without a date', 'Yes\n\nYou wrote:\n> q\n\nNo', 'Yes\n\nNo'],
]
for (const [name, text, kept] of mixed)
  test(`a reply with ${name}`, () => assert.deepEqual(stripReply(text), { text: kept, signature: '' }))

const bombs = [
  '>',
  '> \n',
  'On 1 ',
  'On 1\n',
  'From: x\n',
  '-- \n',
  '-',
  '_',
  ' ',
  '\n',
  'Thanks,\n',
  'On 1 <\n',
  '---- a wrote\n',
  'On Mon 1 '.repeat(30),
  'Date: 2026 10:10\nx\n',
  'Sent from my iPhone\n',
  'Le 1 a écrit ',
  '\r',
]
for (const bomb of bombs) {
  test(`a megabyte of ${JSON.stringify(bomb)} ends`, () => {
    stripReply(bomb.repeat(Math.floor(1_000_000 / bomb.length)))
  })
}
test('stripping adds nothing to a text', () => {
  const lines = fc.array(
    fc.constantFrom(
      '> q',
      'On 1 Jan Ann wrote:',
      'text',
      '',
      '-- ',
      'Thanks,',
      'From: a',
      'To: b',
      'Sent: c',
      '---',
    ),
    { maxLength: 20 },
  )
  fc.assert(
    fc.property(lines, (parts) => {
      const given = parts.join('\n')
      const { text, signature } = stripReply(given)
      for (const line of `${text}\n${signature}`.split('\n')) assert.ok(given.includes(line))
    }),
    { seed: 20260601, numRuns: 2_000 },
  )
})
