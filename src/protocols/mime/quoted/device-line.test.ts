import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeviceLine } from './device-line.ts'

const devices = [
  'Sent from my iPhone',
  'Sent from my iPad.',
  'Sent from my Wiko RIDGE FAB 4G',
  'Sent with Sparrow',
  'Sent from my Verizon Wireless BlackBerry',
  'Sent from my Samsung Galaxy smartphone.',
  'Sent from my T-Mobile 4G LTE Device',
  'Sent from my mobile phone. Please excuse any typos.',
  'Sent from my iPhone, please excuse brevity',
  'Sent from Yahoo Mail on Android',
  'Sent from Mail for Windows 10',
  'Sent with Proton Mail secure email.',
  'Sent from TypeApp<https://there.example/r?b=2621>',
  'Get Outlook for iOS<https://there.example/o0ukef>',
  'Von meinem iPhone gesendet',
  'Diese Nachricht wurde von meinem Android Mobiltelefon mit GMX Mail gesendet.',
  'Gesendet von Outlook für Android<https://there.example/a>',
  'Envoyé depuis mon smartphone Samsung Galaxy.',
  'Télécharger Outlook pour iOS',
  'Enviado desde mi iPhone',
  'Enviado do meu iPhone',
  'Inviato da iPhone',
  'Verstuurd vanaf mijn iPhone',
  'Sendt fra min iPhone',
  'Skickat från min iPhone',
  'Wysłane z iPhone’a',
  'Отправлено из мобильной Почты Mail.ru',
  'iPhoneから送信',
  '发自我的iPhone',
  '從我的 iPhone 傳送',
  '나의 iPhone에서 보냄',
  'Đã gửi từ iPhone của tôi',
]
for (const line of devices) test(`a device line: ${line}`, () => assert.equal(isDeviceLine(line), true))

const sentences = [
  'Sent from my desk, which is easier than from a phone.',
  'Sent from my new laptop, since the old one died.',
  'Sent from my phone because the laptop is broken.',
  'Sent from Berlin with love.',
  'Sent from my heart.',
  'Sent from Berlin on Monday.',
  'Sent via DHL on Monday.',
  'Sent from Outlook, it bounced twice.',
  'Sent from my wife’s iPad, mine is broken.',
  'Sent via courier yesterday, it arrives tomorrow.',
  'Sent from my iPhone app are all the notifications you saw.',
  'Get Outlook for iOS and then try again.',
  'Gesendet habe ich es gestern schon.',
  'Gesendet von meinem Schreibtisch, weil das Telefon leer ist.',
  'Heute gesendet.',
  'Envoyé depuis mon bureau, le téléphone est en panne.',
  'Enviado desde mi casa, donde no hay teléfono.',
  'Verzonden met de post van gisteren.',
  'Sendt fra min gamle adresse, beklager.',
  'Отправлено с почты вчера вечером.',
  '我明天给你发送。',
]
for (const line of sentences) test(`a sentence: ${line}`, () => assert.equal(isDeviceLine(line), false))

test('a long line is none, whatever it holds', () => {
  for (const word of ['a ', '.', 'von ', 'Sent from ', '<https:'])
    assert.equal(isDeviceLine(`Sent from ${word.repeat(100_000)}`), false)
})
