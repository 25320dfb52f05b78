/** Prose of our own by script, to measure estimates with. None of it was used to fit them. */
export const TEXTS_BY_SCRIPT: Readonly<Record<string, readonly string[]>> = {
  English: [
    'The old lighthouse keeper climbed the stairs every evening, even after the lamp had been made automatic. He said that somebody ought to look at the sea. In winter, when the storms came from the west, he could hear the stones rolling on the beach below.',
    'Please summarise the attached report in five bullet points. Mention the budget, the risks and the people who are responsible, and keep a friendly tone. If something is unclear, ask me before you write it.',
  ],
  'Latin with diacritics': [
    'Le vieux gardien du phare montait l’escalier chaque soir, même après que la lampe était devenue automatique. Il disait que quelqu’un devait bien regarder la mer. Résumez le rapport ci-joint en cinq points, s’il vous plaît.',
    'Der alte Leuchtturmwärter stieg jeden Abend die Treppe hinauf, auch nachdem die Lampe längst von selbst brannte. Bitte fassen Sie den beigefügten Bericht in fünf Punkten zusammen und erwähnen Sie die Risiken.',
    'Starý strážce majáku vycházel každý večer po schodech nahoru, i když se lampa už dávno rozsvěcela sama. Říkal, že se na moře přece musí někdo dívat.',
    'Người gác hải đăng già leo cầu thang mỗi buổi tối, ngay cả sau khi ngọn đèn đã được tự động hóa. Ông nói rằng phải có ai đó nhìn ra biển.',
    'Yaşlı fener bekçisi, lamba otomatik hale getirildikten sonra bile her akşam merdivenleri çıkardı. Birinin denize bakması gerektiğini söylerdi.',
    'El viejo guardián del faro subía la escalera cada tarde, incluso después de que la lámpara se volviera automática. Decía que alguien tenía que mirar el mar.',
  ],
  Cyrillic: [
    'Старый смотритель маяка каждый вечер поднимался по лестнице, даже когда лампа стала зажигаться сама. Он говорил, что кто-то должен смотреть на море. Зимой, когда с запада приходили бури, он слышал, как внизу катятся камни.',
    'Старий доглядач маяка щовечора піднімався сходами, навіть коли лампа почала вмикатися сама. Він казав, що хтось має дивитися на море.',
  ],
  Greek: [
    'Ο γέρος φαροφύλακας ανέβαινε τις σκάλες κάθε βράδυ, ακόμη και όταν η λάμπα έγινε αυτόματη. Έλεγε ότι κάποιος πρέπει να κοιτάζει τη θάλασσα. Τον χειμώνα άκουγε τις πέτρες να κυλούν στην παραλία.',
  ],
  Arabic: [
    'كان حارس المنارة العجوز يصعد الدرج كل مساء، حتى بعد أن أصبح المصباح يعمل وحده. كان يقول إن على أحد ما أن ينظر إلى البحر. وفي الشتاء كان يسمع الحجارة تتدحرج على الشاطئ.',
    'نگهبان پیر فانوس دریایی هر شب از پله‌ها بالا می‌رفت، حتی پس از آنکه چراغ خودکار شده بود. او می‌گفت کسی باید به دریا نگاه کند.',
  ],
  Hebrew: [
    'שומר המגדלור הזקן עלה במדרגות בכל ערב, גם אחרי שהמנורה נעשתה אוטומטית. הוא אמר שמישהו צריך להסתכל על הים. בחורף שמע את האבנים מתגלגלות על החוף.',
  ],
  Devanagari: [
    'बूढ़ा प्रकाशस्तंभ रक्षक हर शाम सीढ़ियाँ चढ़ता था, तब भी जब दीपक अपने आप जलने लगा था। वह कहता था कि किसी को तो समुद्र की ओर देखना चाहिए। सर्दियों में वह नीचे तट पर पत्थरों के लुढ़कने की आवाज़ सुनता था।',
  ],
  Thai: [
    'ชายชราผู้เฝ้าประภาคารเดินขึ้นบันไดทุกเย็น แม้หลังจากที่โคมไฟทำงานเองได้แล้ว เขาบอกว่าต้องมีใครสักคนคอยมองทะเล ในฤดูหนาวเขาได้ยินเสียงก้อนหินกลิ้งอยู่บนชายหาด',
  ],
  Han: [
    '老灯塔看守人每天傍晚都要爬上楼梯，即使灯已经变成自动的了。他说总得有人看着大海。冬天暴风雨从西边来的时候，他能听见下面海滩上石头滚动的声音。',
    '老燈塔看守人每天傍晚都要爬上樓梯，即使燈已經變成自動的了。他說總得有人看著大海。請用五個要點總結附件中的報告。',
  ],
  'Kana and kanji': [
    '年老いた灯台守は、ランプが自動になってからも、毎晩階段を上っていた。誰かが海を見ていなければならない、と彼は言った。冬になると、浜辺で石が転がる音が聞こえた。添付の報告書を五つの要点にまとめてください。',
  ],
  Hangul: [
    '늙은 등대지기는 등불이 자동으로 바뀐 뒤에도 매일 저녁 계단을 올라갔다. 그는 누군가는 바다를 바라보아야 한다고 말했다. 겨울이면 해변에서 돌이 구르는 소리가 들렸다.',
  ],
  Emoji: [
    'See you at the beach 🏖️ tomorrow! Bring towels 🧺, drinks 🍹 and good mood 😎. Can’t wait!!! 🎉🎉 Mum says hi 👋🏼❤️',
    '😂😂😂 no way 🙈 ok 👍 deal 🤝 see 👀 you 🚀',
  ],
  Code: [
    'export function rangeOf(values: readonly number[]): { low: number; high: number } {\n  let low = Infinity\n  let high = -Infinity\n  for (const value of values) {\n    if (value < low) low = value\n    if (value > high) high = value\n  }\n  return { low, high }\n}\n',
    'def moving_average(values, window=3):\n    """Yields the mean of each run of `window` values."""\n    total = sum(values[:window])\n    yield total / window\n    for i in range(window, len(values)):\n        total += values[i] - values[i - window]\n        yield total / window\n',
    "SELECT a.id, count(*) AS calls, sum(c.price) FILTER (WHERE c.state = 'settled')\nFROM accounts a JOIN calls c ON c.account_id = a.id\nWHERE c.created_at >= now() - interval '7 days'\nGROUP BY a.id HAVING count(*) > 10 ORDER BY 2 DESC LIMIT 50;\n",
  ],
  JSON: [
    '{"type":"function","function":{"name":"get_weather","description":"Tells the weather of a place.","parameters":{"type":"object","properties":{"place":{"type":"string","description":"The name of a city"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["place"]}}}',
    '{\n  "id": 48213,\n  "total": 1299.5,\n  "currency": "EUR",\n  "lines": [\n    { "sku": "A-1001", "count": 2, "price": 499.75 },\n    { "sku": "B-2040", "count": 1, "price": 300 }\n  ]\n}',
  ],
  Digits: [
    '2026-01-31 12:45:09 1048576 3.14159265 42 1000000 7 99.95 0.001 86400 65535 192.168.0.17 31557600 2718281828',
    '17, 23, 42, 108, 1729, 65536, 271828, 3141592, 16777216, 123456789, 9876543210',
  ],
}
