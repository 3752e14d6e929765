<?php
// Sends a mail with the plugin for WordPress: php wordpress.php JOB-FILE, and INTEROP_WORDPRESS_PLUGIN, its folder.
// WordPress is Debian's. Of its core only what the plugin's wp_mail() calls is loaded; options come without a database.
const ABSPATH = '/usr/share/wordpress/';
const WPINC = 'wp-includes';
const WP_DEBUG = false;
const WP_CONTENT_DIR = '/nonexistent';
foreach (['load', 'compat', 'plugin', 'class-wp-error', 'functions', 'formatting', 'l10n', 'kses', 'option', 'general-template',
    'http', 'class-wp-http', 'class-wp-http-streams', 'class-wp-http-curl', 'class-wp-http-proxy', 'class-wp-http-cookie',
    'class-wp-http-response', 'class-wp-http-requests-response', 'class-wp-http-requests-hooks', 'class-wp-http-encoding',
    'link-template'] as $file) {
    require_once ABSPATH.WPINC."/$file.php";
}

$job = json_decode(file_get_contents($argv[1]), true);
$mail = $job['mail'];
preg_match('/^(.*) <(.*)>$/', $job['from'], $from);
$options = [
    'mailgun' => [
        'region' => 'us', 'apiKey' => $job['key'], 'domain' => $job['domain'], 'tag' => $mail['tag'],
        'from-name' => $from[1], 'from-address' => $from[2], 'override-from' => '1',
    ],
    'blog_charset' => 'UTF-8',
    'siteurl' => 'https://blog.example',
    'home' => 'https://blog.example',
];
add_filter('pre_option', fn ($none, $name) => $options[$name] ?? '', 10, 2);
add_filter('http_request_args', fn ($args) => [...$args, 'sslcertificates' => $job['authorityFile']]);

// What docs/applications.md tells users to install.
add_filter('pre_http_request', function ($answer, $options, $url) use ($job) {
    $ours = preg_replace('#^https://api(\.eu)?\.mailgun\.net/#', "https://$job[https]/", $url);
    return $ours === $url ? $answer : wp_remote_request($ours, $options);
}, 10, 3);

$plugin = getenv('INTEROP_WORDPRESS_PLUGIN');
require "$plugin/includes/wp-mail-api.php";

$folder = dirname($argv[1]);
file_put_contents("$folder/{$mail['file']['name']}", $mail['file']['content']);
// As WooCommerce does it: the plugin takes the text from here.
add_action('phpmailer_init', function ($mailer) use ($mail) { $mailer->AltBody = $mail['text']; });
$sent = wp_mail($mail['to'], $mail['subject'], $mail['html'], ['Content-Type: multipart/alternative'], ["$folder/{$mail['file']['name']}"]);
if (!$sent) {
    fwrite(STDERR, mg_api_last_error() ?? 'not sent');
    exit(1);
}
