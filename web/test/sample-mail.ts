import type { Attachment, CapturedMessage, DkimResult } from '../src/api.ts'

/** A captured message with the bytes of its parts, as the service would hold it. */
export interface StoredMail {
  message: CapturedMessage
  raw: string
  parts: Map<number, Buffer>
}

interface Draft {
  from?: string
  to?: string
  envelopeFrom?: string
  envelopeTo?: string[]
  subject?: string
  text?: string
  html?: string
  tags?: string[]
  dkim?: DkimResult[]
  headers?: [string, string][]
  attachments?: { name: string; type: string; bytes: Buffer; id?: string }[]
  receivedMs?: number
}

export const DOMAIN = 'mg.example.com'

const SIGNED: DkimResult[] = [{ result: 'pass', domain: DOMAIN, selector: 'k1' }]
let count = 0

export function mail(draft: Draft): StoredMail {
  count += 1
  const id = `AZ4msg${String(count).padStart(16, '0')}`
  const to = draft.to ?? 'Alice Moreau <alice@example.org>'
  const from = draft.from ?? `Northwind Shop <shop@${DOMAIN}>`
  const subject = draft.subject ?? 'Hello'
  const receivedMs = draft.receivedMs ?? Date.now()
  const messageId = `20261121.${id}@${DOMAIN}`
  const headers: [string, string][] = [
    ['Received', `from localhost (localhost [127.0.0.1]) by ${DOMAIN} with ESMTP`],
    ['From', from],
    ['To', to],
    ['Subject', subject],
    ['Message-Id', `<${messageId}>`],
    ['Date', new Date(receivedMs).toUTCString()],
    ['MIME-Version', '1.0'],
    ...(draft.headers ?? []),
  ]
  const raw = `${headers.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n${draft.text ?? draft.html ?? ''}`
  const attachments = (draft.attachments ?? []).map(
    (part, index): Attachment => ({
      n: index + 1,
      name: part.name,
      'content-type': part.type,
      size: part.bytes.length,
      'content-id': part.id ? `<${part.id}>` : null,
    }),
  )
  return {
    raw,
    parts: new Map((draft.attachments ?? []).map((part, index) => [index + 1, part.bytes])),
    message: {
      id,
      received_at: new Date(receivedMs).toISOString(),
      envelope: {
        from: draft.envelopeFrom ?? `bounce+${count}=alice@${DOMAIN}`,
        to: draft.envelopeTo ?? [/<([^>]*)>/.exec(to)?.[1] ?? to],
      },
      from,
      to,
      subject,
      size: raw.length + attachments.reduce((sum, part) => sum + Math.ceil(part.size * 1.37), 0),
      tags: draft.tags ?? [],
      delivery_id: `d-${id}`,
      headers,
      text: draft.text ?? null,
      html: draft.html ?? null,
      amp: null,
      attachments,
      authentication: { dkim: draft.dkim ?? SIGNED },
      message_id: messageId,
      storage_key: `k-${id}`,
      domain: DOMAIN,
    },
  }
}

const MINUTE_MS = 60_000
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** Mail as an application sends it. Newest last. `remote` is an origin on another host. */
export function everydayMail(remote: string, nowMs = Date.now()): StoredMail[] {
  return [
    mail({
      receivedMs: nowMs - 3 * 24 * 60 * MINUTE_MS,
      from: 'Ghost <noreply@mg.example.com>',
      to: 'Jonas Weber <jonas@example.net>',
      subject: 'Your weekly digest: 14 new posts',
      text: 'Fourteen posts since Monday.',
      tags: ['digest', 'newsletter'],
    }),
    mail({
      receivedMs: nowMs - 26 * 60 * MINUTE_MS,
      from: 'Discourse <notifications@mg.example.com>',
      to: 'priya.raman@example.org',
      subject: '[Support] Re: Webhook retries after a 406',
      text: 'Priya Raman replied:\n\n> A 406 stops the retries, 403 does not.\n\nThat was it, thank you!',
      tags: ['notification'],
      dkim: [{ result: 'none', domain: '', selector: '' }],
    }),
    mail({
      receivedMs: nowMs - 190 * MINUTE_MS,
      from: 'דואר <shalom@mg.example.com>',
      to: 'נועה לוי <noa@example.org>',
      subject: 'ברוכים הבאים לחנות שלנו (order 42)',
      text: 'שלום נועה,\nההזמנה שלך בדרך.',
      tags: ['welcome'],
    }),
    mail({
      receivedMs: nowMs - 74 * MINUTE_MS,
      from: 'Northwind Shop <billing@mg.example.com>',
      subject: 'Invoice 2026-1187 for November',
      html: '<p>Dear Alice,</p><p>your invoice is attached.</p>',
      text: 'Dear Alice,\nyour invoice is attached.',
      tags: ['invoice', 'monthly', 'eu', 'pdf'],
      attachments: [
        { name: 'invoice-2026-1187.pdf', type: 'application/pdf', bytes: Buffer.alloc(48_213) },
        { name: 'terms.txt', type: 'text/plain', bytes: Buffer.from('Pay within 14 days.') },
      ],
    }),
    mail({
      receivedMs: nowMs - 22 * MINUTE_MS,
      from: 'Northwind Shop <shop@mg.example.com>',
      subject: 'Your order has shipped 📦',
      html: shippedHtml(remote),
      text: `Good news, Alice!\n\nYour order 1187 left our warehouse today.\nTrack it: ${remote}/track/1187\n`,
      tags: ['shipping'],
      attachments: [{ name: 'logo.png', type: 'image/png', bytes: PIXEL, id: 'logo@northwind' }],
      headers: [
        ['List-Unsubscribe', '<https://mg.example.com/u/abc>'],
        [
          'DKIM-Signature',
          `v=1; a=rsa-sha256; c=relaxed/relaxed; d=${DOMAIN}; s=k1; h=from:to; bh=MTIz; b=${'aB3d'.repeat(60)}`,
        ],
      ],
    }),
    mail({
      receivedMs: nowMs - 2 * MINUTE_MS,
      from: 'Accounts <security@mg.example.com>',
      subject: 'Confirm your address',
      html: '<p>Hello!</p><p><a href="https://shop.example.com/confirm?token=1f0c2d3e">Confirm your address</a></p>',
      text: 'Confirm your address: https://shop.example.com/confirm?token=1f0c2d3e',
      tags: ['signup'],
      dkim: [
        { result: 'fail', domain: DOMAIN, selector: 'k1', reason: 'the body was changed after signing' },
      ],
    }),
  ]
}

const shippedHtml = (remote: string) => `<!doctype html>
<html><body style="margin:0;background:#eef1f4;font-family:Helvetica,Arial,sans-serif;color:#1f2933">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0"><tr><td align="center" style="padding:28px 12px">
<table role="presentation" width="560" cellpadding="0" cellspacing="0" style="max-width:560px;width:100%;background:#fff;border-radius:12px">
<tr><td style="padding:28px 32px 0"><img src="cid:logo%40northwind" width="36" height="36" alt="" style="border-radius:8px">
<h1 style="font-size:22px;margin:18px 0 8px">Good news, Alice!</h1>
<p style="font-size:15px;line-height:1.6;margin:0">Your order <b>1187</b> left our warehouse today and will be with you on Tuesday.</p></td></tr>
<tr><td style="padding:22px 32px"><a href="${remote}/track/1187" style="display:inline-block;background:#2f6fed;color:#fff;padding:12px 20px;border-radius:8px;text-decoration:none;font-weight:bold">Track the parcel</a></td></tr>
<tr><td style="padding:0 32px 28px;font-size:13px;color:#66727f;line-height:1.6">2 x Enamel mug, blue<br>1 x Coffee filter holder<hr style="border:0;border-top:1px solid #e3e7ea;margin:16px 0">
Northwind Shop, Harbour Street 4 &middot; <a href="${remote}/unsubscribe" style="color:#66727f">Unsubscribe</a></td></tr>
</table><img src="${remote}/banner.png" width="1" height="1" alt=""><img src="${remote}/pixel.gif" width="1" height="1" alt=""></td></tr></table></body></html>`

const LONG_LOCAL_PART = 'a-very-long-local-part-that-nobody-would-choose-but-somebody-will-send-'.repeat(3)

/**
 * Mail that attacks its reader. Each payload reports by setting `pwned` on whatever window it reaches, by a
 * dialog, or by a request to `remote`.
 */
export function hostileMail(remote: string, nowMs = Date.now()): StoredMail[] {
  const payload = `"><img src=x onerror="window.top.pwned=1;alert(1)"><svg/onload=alert(2)>`
  return [
    mail({
      receivedMs: nowMs - 50 * MINUTE_MS,
      subject: 'Remote control',
      html: hostileHtml(remote),
      text: payload,
    }),
    mail({
      receivedMs: nowMs - 49 * MINUTE_MS,
      from: `${payload} <x@mg.example.com>`,
      subject: `${payload} ${'W'.repeat(4000)} 🏴‍☠️`,
      to: `${LONG_LOCAL_PART}@${'sub.'.repeat(30)}example.org`,
      tags: [payload, 'x'.repeat(128)],
      text: payload,
      headers: [[`X-${'Long'.repeat(40)}`, payload.repeat(20)]],
      dkim: [{ result: 'fail', domain: payload, selector: payload, reason: payload }],
      attachments: [
        {
          name: `../../${payload}.html`,
          type: `text/html;x=${payload}`,
          bytes: Buffer.from('<script>alert(3)</script>'),
        },
      ],
    }),
  ]
}

const hostileHtml = (remote: string) => `<html manifest="${remote}/manifest" onload="alert(4)"><head>
<base href="${remote}/base/"><meta http-equiv="refresh" content="0;url=${remote}/refresh">
<meta http-equiv="Content-Security-Policy" content="default-src * 'unsafe-inline'">
<link rel="stylesheet" href="${remote}/style.css"><link rel="preconnect" href="${remote}"><link rel="prefetch" href="${remote}/prefetch">
<link rel="dns-prefetch" href="${remote}"><link rel="preload" as="image" href="${remote}/preload"><link rel="icon" href="${remote}/icon">
<style>@import url("${remote}/import.css");@font-face{font-family:f;src:url(${remote}/font)}body{font-family:f;background:url('${remote}/css.png')}
li::before{content:url(${remote}/before.png)}</style><script>top.pwned=1;fetch('${remote}/fetch')</script><script src="${remote}/script.js"></script></head>
<body background="${remote}/background.png" onload="alert(5)" onpageshow="top.pwned=1"><h1 id="shown">Shown all the same</h1>
<img src="${remote}/img.png"><img srcset="${remote}/srcset.png 2x, ${remote}/srcset3.png 3x"><picture><source srcset="${remote}/source.png"><img></picture>
<img src=x onerror="top.pwned=1;alert(6)"><svg onload="alert(7)"><image href="${remote}/svg.png"/><use href="${remote}/use.svg#a"/><script>alert(8)</script></svg>
<iframe src="${remote}/iframe"></iframe><iframe srcdoc="<script>top.pwned=1</script>"></iframe><object data="${remote}/object"></object><embed src="${remote}/embed">
<video src="${remote}/video" poster="${remote}/poster.png" autoplay></video><audio src="${remote}/audio" autoplay></audio><input type="image" src="${remote}/input.png" autofocus onfocus="alert(11)">
<form action="${remote}/form" id="f"><button id="submit" autofocus>Go</button></form><a id="leave" href="${remote}/leave" target="_top" ping="${remote}/ping">leave</a>
<a id="inside" href="${remote}/inside">inside</a><a id="script" href="javascript:top.pwned=1">script</a><div style="background:url(&quot;${remote}/style.png&quot;)">styled</div>
<template shadowrootmode="open"><img src="${remote}/shadow.png"></template><details open ontoggle="alert(12)"><summary>d</summary></details><marquee onstart="alert(13)">m</marquee>
<noscript><p title="</noscript><img src=x onerror=alert(14)>"></noscript><ul><li>list</li></ul>
<svg><style><img src=x onerror=alert(9)></style></svg><math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=alert(10)&gt;"></table></math></body></html>`
