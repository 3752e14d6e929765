import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { htmlToText } from './html-text.ts'
import { stripReplyHtml } from './stripped-html.ts'

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
    '<html><body><div>Hi</div></body></html>',
  ],
  [
    'Outlook',
    '<body><div class=W><p>Hi</p><div><div style="border:none;border-top:solid #E1E1E1 1.0pt">From</div></div><p>q</p></div></body>',
    '<body><div class=W><p>Hi</p></div></body>',
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
  [
    'an attribution in a block of its own',
    '<div>Hi</div><div>On Mon, 1 Jun 2026 at 12:00, Ann &lt;a@x.example&gt; wrote:</div><blockquote>q</blockquote>',
    '<div>Hi</div>',
  ],
  [
    'an attribution without a time over the last block',
    '<div>Hi</div><div>Ann wrote:</div>\n<blockquote>q<br><br>r</blockquote>\n',
    '<div>Hi</div>',
  ],
  [
    'the same over a block that is answered',
    '<div>Ann wrote:</div><blockquote>q</blockquote><p>a</p>',
    '<div>Ann wrote:</div><blockquote>q</blockquote><p>a</p>',
  ],
  [
    'the same over text that is not marked',
    '<div>Hi</div><p><span>Le lun. 1 juin 2026 à 12:00, </span><b>Ann</b> a écrit&nbsp;:</p><p>q</p>',
    '<div>Hi</div>',
  ],
  [
    'an attribution over two lines',
    '<div>Hi</div><div>On 1 Jun 2026, Ann Lee<br>&lt;a@x.example&gt; wrote:<br></div><div>q</div>',
    '<div>Hi</div>',
  ],
  [
    'a header block below a rule',
    '<div>Hi<hr><b>From: </b>Ann<br><b>Sent: </b>Monday<br><br>q</div>',
    '<div>Hi</div>',
  ],
  [
    'a header block of Outlook without a rule',
    '<p>Tak</p><p><b>Od:</b> Ann [mailto:a@x.example] <br><b>Wysłano:</b> 1 czerwca 2026 12:00<br><b>Do:</b> Bob<br><b>Temat:</b> x</p><p>q</p>',
    '<p>Tak</p>',
  ],
  [
    'a header block in a table',
    '<p>Hi</p><table><tr><td>From:</td><td>a@x.example</td></tr><tr><td>To:</td><td>Bob</td></tr><tr><td>Subject:</td><td>x</td></tr></table><p>q</p>',
    '<p>Hi</p>',
  ],
  [
    'a header block in a table with borders',
    '<p>Hi</p><table><tr><td style="border-top:1px solid">From:</td><td style="border-top:1px solid">a@x.example</td></tr><tr><td>Subject:</td><td>x</td></tr><tr><td>Sent:</td><td>Monday</td></tr></table><p>q</p>',
    '<p>Hi</p>',
  ],
  [
    'Windows Mail',
    '<div>Hi</div><div style="border-top-color: rgb(229, 229, 229); border-top-width: 1px; border-top-style: solid"><b>От:</b>&nbsp;Ann<br><b>Отправлено:</b>&nbsp;\u200eпонедельник\u200e</div><div>q</div>',
    '<div>Hi</div>',
  ],
  [
    'Outlook Express',
    '<div>Hi</div><div>----- Original Message ----- </div><blockquote style="border-left: solid"><div><b>From:</b> Ann</div><div>q</div></blockquote>',
    '<div>Hi</div>',
  ],
  ['Zimbra', '<div>Hi<hr id="zwchr"><b>Von: </b>Ann<br><div>q</div></div>', '<div>Hi</div>'],
  ['AOL', 'Hello<div>-----Original Message-----<br>From: Ann<br><br><pre>q</pre></div>', 'Hello'],
  [
    'Mail.ru',
    '<p>Hi</p><br>Thu, 26 Jun 2014 14:00:51 +0400 от Ann &lt;a@x.example&gt;:<br><blockquote style="border-left:1px solid #0857A6">q</blockquote><br>',
    '<p>Hi</p><br>',
  ],
  [
    'Yandex',
    '<div>Hi</div><div>01.06.2026, 12:00, "Ann" &lt;a@x.example&gt;:</div><blockquote>q</blockquote>',
    '<div>Hi</div>',
  ],
  [
    'Samsung',
    '<div>Hi</div><div>-------- Ursprüngliche Nachricht --------</div><div>Von: Ann</div><div>q</div>',
    '<div>Hi</div>',
  ],
  [
    'Apple Mail',
    'Hi<div><blockquote type="cite"><div>On Jun 1, 2026, at 12:00, Ann wrote:</div><br>q</blockquote></div>',
    'Hi',
  ],
  [
    'Spark',
    '<div>Hi</div><div name="messageReplySection">x<br><blockquote>q</blockquote></div>',
    '<div>Hi</div>',
  ],
  [
    'answers in between',
    '<div>On 2026-06-01 Ann wrote:</div><blockquote>q1</blockquote><p>a1</p><blockquote>q2</blockquote><p>a2</p>',
    '<p>a1</p><p>a2</p>',
  ],
  [
    'answers in between, in Gmail',
    '<div class="gmail_quote"><div class="gmail_attr">x:</div><blockquote class="gmail_quote">q1</blockquote><p>a1</p><blockquote class="gmail_quote">q2<blockquote>q3</blockquote></blockquote><p>a2</p></div>',
    '<div class="gmail_quote"><p>a1</p><p>a2</p></div>',
  ],
  ['text on both sides', 'Ja<blockquote type="cite">q</blockquote>Nein', 'Ja<br>Nein'],
  [
    'lines of preformatted text',
    '<pre>Yes\n\nOn 2026-06-01 12:00, Ann wrote:\n&gt; q &amp; q\n&gt; r\nMore</pre>',
    '<pre>Yes\n\nMore</pre>',
  ],
  ['marked lines', 'Hi<br>&gt; From: a@x.example<br>&gt; q<br>', 'Hi<br>'],
  [
    'a quotation of the writer, kept',
    '<p>You said:</p><blockquote>Monday</blockquote><p>No.</p>',
    '<p>You said:</p><blockquote>Monday</blockquote><p>No.</p>',
  ],
  [
    'a quotation of the writer over the old message, kept',
    '<blockquote>The law</blockquote><p>So no.</p><div>On 2026-06-01 Ann wrote:</div><blockquote>q</blockquote>',
    '<blockquote>The law</blockquote><p>So no.</p>',
  ],
  [
    'a quotation by a button of Gmail, kept',
    '<p>As he says:</p><blockquote class="gmail_quote">Monday</blockquote>',
    '<p>As he says:</p><blockquote class="gmail_quote">Monday</blockquote>',
  ],
  [
    'rules of the writer, kept',
    '<p>One</p><hr><p>Two</p><div style="border-top:1px solid red">Three</div>',
    '<p>One</p><hr><p>Two</p><div style="border-top:1px solid red">Three</div>',
  ],
  [
    'a head before an answer below',
    '<html><head><style>p{}</style></head><body><blockquote type=cite>q</blockquote><p>a</p></body></html>',
    '<html><head><style>p{}</style></head><body><p>a</p></body></html>',
  ],
]
for (const [name, html, kept] of documents) {
  test(`HTML with ${name}`, () => assert.equal(stripReplyHtml(html), kept))
}

const bombs = [
  '<blockquote>',
  '<div class="gmail_quote">',
  '<div id="appendonsend">',
  '</blockquote>',
  '<b>',
  '<',
  '<p>x</p>',
  '<br>',
  '<hr>',
  'From:<br>',
  '<hr>From: a@x.example 2026 10:10<br>',
  '<pre>a\n',
  '<blockquote>x</blockquote>',
  'x<blockquote type="cite">y</blockquote>',
  '<div></div>',
]
for (const [name, filler] of [
  ['style', 'border-top:'],
  ['style', 'border-top-style: '],
  ['style', 'border:'],
  ['class', 'x_'],
  ['class', 'a '],
] as const) {
  test(`an attribute ${name} of a megabyte of ${filler} is read in linear time`, () => {
    const value = filler.repeat(Math.floor(900_000 / filler.length))
    const before = process.threadCpuUsage()
    const html = `<div ${name}="${value}">a</div>b`
    assert.equal(stripReplyHtml(html)?.length, html.length)
    const { user } = process.threadCpuUsage(before)
    assert.ok(user < 2_000_000, `${user / 1_000} ms`)
  })
}

for (const bomb of bombs) {
  test(`a megabyte of ${bomb} as HTML ends`, () => {
    stripReplyHtml(bomb.repeat(Math.floor(1_000_000 / bomb.length)))
  })
}

test('what is left of any HTML is a part of its text, and stripping leaves it as it is', () => {
  const pieces = [
    'On 1 Jan 2026 Ann wrote:',
    '&gt; q',
    'text ',
    '<hr>',
    '<br>',
    'From: a@x.example<br>',
    'Subject: x<br>',
    'Date: 1 Jan 2026 10:10<br>',
    '<img src="x">',
    '<!-- x -->',
    ...['p', 'div', 'b', 'blockquote', 'pre', 'table', 'td'].flatMap((name) => [`<${name}>`, `</${name}>`]),
    '<blockquote type="cite">',
    '<div class="gmail_quote">',
    '<div id="appendonsend">',
    '<style>x</style>',
  ]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 20 }), (parts) => {
      const html = parts.join('')
      const stripped = stripReplyHtml(html)
      assert.ok(stripped !== null)
      const words = (given: string) =>
        htmlToText(given)
          .split(/[\s>-]+/)
          .filter(Boolean)
      const given = words(html)
      let at = 0
      for (const word of words(stripped)) {
        at = given.indexOf(word, at) + 1
        assert.ok(at > 0, `${html} -> ${stripped}`)
      }
      if (!html.includes('<img'))
        assert.equal(words(html).length > 0, words(stripped).length > 0, `${html} -> ${stripped}`)
    }),
    { seed: 20260601, numRuns: 3_000 },
  )
})
