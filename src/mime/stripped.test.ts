import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stripReply, stripReplyHtml } from './stripped.ts'

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

const documents: [name: string, html: string, kept: string][] = [
  ['nothing quoted', '<p>Hi &amp; <b>you</p>', '<p>Hi &amp; <b>you</p>'],
  [
    'a Gmail quotation',
    '<div>Hi</div><div class="gmail_quote x"><div>On x</div><blockquote>q</blockquote></div>',
    '<div>Hi</div>',
  ],
  [
    'a cited block',
    '<p>Hi</p><blockquote type="cite"><p>q</p><blockquote>r</blockquote></blockquote><p>end</p>',
    '<p>Hi</p><p>end</p>',
  ],
  [
    'an indented block, kept',
    '<p>Hi</p><blockquote style="margin:0;border:none">x</blockquote>',
    '<p>Hi</p><blockquote style="margin:0;border:none">x</blockquote>',
  ],
  [
    'Thunderbird',
    '<body><p>Hi</p><div class="moz-cite-prefix">On x:<br></div><blockquote>q</blockquote></body>',
    '<body><p>Hi</p></body>',
  ],
  [
    'Outlook on the web',
    '<html><body><div>Hi</div><hr><div id="x_divRplyFwdMsg">From</div><div>q</div></body></html>',
    '<html><body><div>Hi</div><hr></body></html>',
  ],
  [
    'Outlook',
    '<body><div class=W><p>Hi</p><div><div style="border:none;border-top:solid #E1E1E1 1.0pt">From</div></div><p>q</p></div></body>',
    '<body><div class=W><p>Hi</p><div></div></div></body>',
  ],
  ['an unclosed quotation', '<p>Hi</p><blockquote>q', '<p>Hi</p>'],
  [
    'a forwarded message',
    '<p>See</p><div class="gmail_quote">---------- Forwarded message<br>x</div>',
    '<p>See</p>',
  ],
  [
    'a forwarded message alone',
    '<div class="gmail_quote">---------- Forwarded message<br>x</div>',
    '<div class="gmail_quote">---------- Forwarded message<br>x</div>',
  ],
  ['nothing else than a quotation', '<blockquote>q</blockquote>', '<blockquote>q</blockquote>'],
  ['a picture beside the quotation', '<img src=x><blockquote>q</blockquote>', '<img src=x>'],
]
for (const [name, html, kept] of documents) {
  test(`HTML with ${name}`, () => assert.equal(stripReplyHtml(html), kept))
}

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
  'Le 1 a écrit ',
  '\r',
]
for (const bomb of bombs) {
  test(`a megabyte of ${JSON.stringify(bomb)} ends`, () => {
    stripReply(bomb.repeat(Math.floor(1_000_000 / bomb.length)))
  })
}
for (const bomb of [
  '<blockquote>',
  '<div class="gmail_quote">',
  '<div id="appendonsend">',
  '</blockquote>',
  '<b>',
  '<',
  '<p>x</p>',
]) {
  test(`a megabyte of ${bomb} as HTML ends`, () => {
    stripReplyHtml(bomb.repeat(Math.floor(1_000_000 / bomb.length)))
  })
}

test('stripping never adds text, and any text and HTML is accepted', () => {
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
      '<p>',
      '</p>',
      '<blockquote>',
      '</blockquote>',
      '<div class="gmail_quote">',
      '</div>',
      '---',
    ),
    { maxLength: 20 },
  )
  fc.assert(
    fc.property(lines, (parts) => {
      const given = parts.join('\n')
      const { text, signature } = stripReply(given)
      for (const line of `${text}\n${signature}`.split('\n')) assert.ok(given.includes(line))
      assert.ok(stripReplyHtml(given).length <= given.length + 200)
    }),
    { seed: 20260601, numRuns: 2_000 },
  )
})
