/** The clients whose packages are small enough for every run: Nodemailer by SMTP, Strapi's and n8n's code by HTTP. */
import { test } from 'node:test'
import { runClients } from './run.ts'

test('Nodemailer, Strapi and n8n send a mail with two forms, a file and a tag', () =>
  runClients(['nodemailer', 'strapi', 'n8n']))
