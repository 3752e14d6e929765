/** Replies received for a route: what of their quotations and signatures its forms and the stored message leave out. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTransport } from 'nodemailer'
import { createReceiver } from '../support/http-receiver.ts'
import { postedForm } from '../support/posted-form.ts'
import { eventually, ownAddress, startTestService } from '../support/service.ts'

interface Reply {
  name: string
  text?: string
  html?: string
  /** Expected; of HTML alone also the text made of it. */
  strippedText?: string
  signature?: string
  /** The text of stripped-html, with single blanks. */
  strippedHtml?: string
}

const texts: [name: string, text: string, kept: string, signature?: string][] = [
  [
    'a sentence that begins as a device line',
    'Here is another e-mail\n\nSent from my desk, which is easier than from a phone.',
    'Here is another e-mail\n\nSent from my desk, which is easier than from a phone.',
  ],
  [
    'a sentence that begins with a device',
    'All done\n\nSent from my iPhone app are all notices that you saw.',
    'All done\n\nSent from my iPhone app are all notices that you saw.',
  ],
  [
    'a German sentence of that kind',
    'Ja\n\nGesendet von meinem Schreibtisch, weil das Telefon leer ist.',
    'Ja\n\nGesendet von meinem Schreibtisch, weil das Telefon leer ist.',
  ],
  ['a parcel', 'Yes\n\nSent via courier yesterday.', 'Yes\n\nSent via courier yesterday.'],
  ['a device', 'Yes\n\nSent from my Galaxy', 'Yes', 'Sent from my Galaxy'],
  [
    'a French device',
    'Oui\n\nEnvoyé depuis mon smartphone Samsung Galaxy.',
    'Oui',
    'Envoyé depuis mon smartphone Samsung Galaxy.',
  ],
  [
    'a Russian attribution, wrapped, the date first',
    'Yes\n\n02.04.2012 14:20 пользователь "Bob" <\nbob@there.example> написал:\n\n> Hi\n',
    'Yes',
  ],
  [
    'a Norwegian attribution, wrapped',
    'Ja\n\ntir. 2. jun. 2026 kl. 14:20 skrev Bob <bob@there.example\n>:\n\n> Hei\n',
    'Ja',
  ],
  [
    'a Japanese attribution, the date first',
    'はい\n\n2026年6月2日(火) 14:20 Bob <\nbob@there.example>:\n\n> こんにちは\n',
    'はい',
  ],
  [
    'a Finnish attribution, the date first',
    'Joo\n\nti 2. kesäk. 2026 klo 14.20 Bob Lee\n<bob@there.example> kirjoitti:\n\nMoi\n',
    'Joo',
  ],
  ['dashes of Android', 'Yes\n\n---- Bob Lee wrote ----\n\nHi\n', 'Yes'],
  [
    'dashes of Samsung in Danish',
    'Ja\n\n-------- Oprindelig besked --------\nFra: Bob <bob@there.example>\nDato: 02.06.2026 14.20 (GMT+01:00)\nTil: Ann\nEmne: Hej\n\nHej\n',
    'Ja',
  ],
]

const htmls: [name: string, html: string, kept: string][] = [
  [
    'an attribution in a div',
    'Reply\n<div>\n  On Mon, 11 Apr 2011 at 6:54 PM, Bob &lt;bob@there.example&gt; wrote:\n</div>\n<blockquote><div>Test</div></blockquote>\n',
    'Reply',
  ],
  [
    'a Swedish attribution in a paragraph',
    '<p>Svar</p><p>Den mån 11 apr. 2011 kl 18:54 skrev Bob &lt;<a href="mailto:bob@there.example">bob@there.example</a>&gt;:</p><p>Test</p>',
    'Svar',
  ],
  [
    'an attribution of Yandex in spans',
    '<div>Reply</div><div><span>11.04.2011, 18:54, "Bob"</span> <span>&lt;bob@there.example&gt;:</span></div><blockquote><p>Test</p></blockquote>',
    'Reply',
  ],
  [
    'an attribution over an answer below',
    '<div>On 11 Apr 2011, at 18:54, Bob wrote:</div><blockquote type="cite">Test</blockquote><div>Reply</div>',
    'Reply',
  ],
  [
    'a header block below a rule',
    '<html><body><div>Hi<div>there</div><hr><b>From: </b>bob@there.example<br><b>To: </b>ann@sender.example<br><b>Sent: </b>Friday, July 22, 2011 6:20:01 PM<br><b>Subject: </b>Hello<br><br><p>Hello</p></div></body></html>',
    'Hi there',
  ],
  [
    'a French header block below a border',
    '<div>Oui</div><div style="border:none;border-top:solid #CCCCCC 1.0pt"><p><b>De :</b> Bob<br><b>Envoyé :</b> lundi 11 avril 2011 18:54<br><b>À :</b> Ann<br><b>Objet :</b> Test</p></div><p>Bonjour</p>',
    'Oui',
  ],
  [
    'a header block of Outlook without a rule',
    '<div class="WordSection1"><p class="MsoNormal">Hi</p><p class="MsoNormal"><b>From:</b> Bob [mailto:bob@there.example] <b>On Behalf Of</b> Sue<br><b>Sent:</b> Monday, April 11, 2011 6:54 PM<br><b>To:</b> Ann<br><b>Subject:</b> Test</p><p>Hello</p></div>',
    'Hi',
  ],
  [
    'a header block of Windows Mail',
    '<div>Hi</div><div style="border-top-color: rgb(229, 229, 229); border-top-width: 1px; border-top-style: solid;"><b>От:</b>&nbsp;Bob<br><b>Отправлено:</b>&nbsp;\u200eпонедельник\u200e<br><b>Кому:</b>&nbsp;Ann</div><div>Hello</div>',
    'Hi',
  ],
  [
    'a quotation of the writer',
    '<p>You said:</p><blockquote>We meet on Monday</blockquote><p>I cannot.</p><div class="gmail_quote"><div class="gmail_attr">On x:</div><blockquote class="gmail_quote">Old</blockquote></div>',
    'You said: We meet on Monday I cannot.',
  ],
  [
    'a quotation of the writer and no other',
    '<p>The law:</p><blockquote>Nobody may</blockquote><p>So no.</p>',
    'The law: Nobody may So no.',
  ],
]

const replies: Reply[] = [
  ...texts.map(([name, text, strippedText, signature = '']) => ({ name, text, strippedText, signature })),
  ...htmls.map(([name, html, strippedHtml]) => ({ name, html, strippedHtml })),
]

test('replies are posted and stored without what was quoted', async (t) => {
  const receiver = await createReceiver({ host: ownAddress() })
  t.after(() => receiver.close())
  const service = await startTestService(t, {
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_DNS: '127.0.0.1:9',
  })
  const form = { expression: 'catch_all()', action: [`forward("${receiver.url}/in")`, 'store()'] }
  assert.equal((await service.call('POST', '/v3/routes', { form })).status, 200)
  const { smtp } = service.service
  const transport = createTransport({
    host: service.config.smtpHost,
    port: smtp.port,
    tls: { rejectUnauthorized: false },
  })
  t.after(() => transport.close())
  for (const [at, { text, html }] of replies.entries()) {
    const envelope = { from: 'bob@there.example', to: `x@${service.domain}` }
    await transport.sendMail({ envelope, from: 'bob@there.example', subject: String(at), text, html })
  }
  const posts = await eventually(
    'all posts',
    async () => receiver.posts.length === replies.length && receiver.posts,
  )
  const posted = new Map<string, (name: string) => string>()
  for (const post of posts) {
    const form = await postedForm(post)
    posted.set(form.text('subject') ?? '', (name) => form.text(name) ?? '')
  }
  const stored = await eventually('all stored events', async () => {
    const events = await service.events('?event=stored&limit=300')
    return events.length === replies.length && (events as unknown as { storage: { url: string } }[])
  })
  const read = new Map<string, (name: string) => string>()
  for (const { storage } of stored) {
    const { body } = await service.call('GET', new URL(storage.url).pathname)
    read.set(body.subject, (name) => body[name])
  }
  for (const [at, reply] of replies.entries())
    for (const field of [posted.get(String(at)), read.get(String(at))]) {
      assert.ok(field, reply.name)
      if (reply.strippedHtml !== undefined) {
        assert.equal(textOf(field('stripped-html')), reply.strippedHtml, reply.name)
        assert.equal(textOf(field('stripped-text')).replaceAll('> ', ''), reply.strippedHtml, reply.name)
      } else {
        assert.equal(field('stripped-text'), reply.strippedText, reply.name)
        assert.equal(field('stripped-signature'), reply.signature, reply.name)
      }
    }
})

const textOf = (html: string) =>
  html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
