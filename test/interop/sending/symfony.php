<?php
// Sends a mail with Symfony Mailer's bridge: php symfony.php JOB-FILE api|http
require '/usr/share/php/Symfony/Component/HttpClient/autoload.php';
require '/usr/share/php/Symfony/Component/Mailer/autoload.php';
require '/usr/share/php/Symfony/Component/Mailer/Bridge/Mailgun/autoload.php';

use Symfony\Component\HttpClient\HttpClient;
use Symfony\Component\Mailer\Bridge\Mailgun\Transport\MailgunTransportFactory;
use Symfony\Component\Mailer\Header\TagHeader;
use Symfony\Component\Mailer\Mailer;
use Symfony\Component\Mailer\Transport\Dsn;
use Symfony\Component\Mime\Email;

$job = json_decode(file_get_contents($argv[1]), true);
$form = $argv[2];

$client = HttpClient::create(['cafile' => $job['authorityFile']]);
[$host, $port] = explode(':', $job['https']);
$dsn = new Dsn("mailgun+$form", $host, $job['key'], $job['domain'], (int) $port);
$transport = (new MailgunTransportFactory(null, $client))->create($dsn);

$mail = $job['mail'];
$email = (new Email())
    ->from($job['from'])
    ->to($mail['to'])
    ->subject($mail['subject'])
    ->text($mail['text'])
    ->html($mail['html'])
    ->attach($mail['file']['content'], $mail['file']['name'], 'text/plain');
$email->getHeaders()->add(new TagHeader($mail['tag']));
(new Mailer($transport))->send($email);
